"""Settings for all tests."""

import os

# The models in the tests are tiny: one thread is faster than several, and much faster when the
# machine does something else besides. Read by torch when it is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
