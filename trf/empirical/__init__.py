"""The empirical receptive field: how far back a trained model's output depends on its input.

The *cumulative normalised gradient* (Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356): for the
output o at the last of N positions and the input embeddings e_m,

    s_m = || d o / d e_m ||,   S_m = s_m / sum_m s_m,   C(j) = sum of the j newest S,
    ERF(eps) = min { j : C(j) > 1 - eps }   in tokens, the token itself included.

It is measured in windows of N tokens, so it compares with the theoretical field *at the same N*
(`theoretical_receptive_field(..., length=N)`), not with the limit. `attention_field` has the real
attention weights of each layer and head in place of S, and `predicted_receptive_field` is what
theory expects of the same model without a gradient.
"""

from __future__ import annotations

from trf.empirical.field import EmpiricalReceptiveField, LayerField
from trf.empirical.gains import BranchGains, branch_gains
from trf.empirical.gradient import REDUCTIONS
from trf.empirical.heads import AttentionField
from trf.empirical.measure import attention_field, empirical_receptive_field
from trf.empirical.predicted import PredictedReceptiveField, predicted_receptive_field

__all__ = [
    "REDUCTIONS",
    "AttentionField",
    "BranchGains",
    "EmpiricalReceptiveField",
    "LayerField",
    "PredictedReceptiveField",
    "attention_field",
    "branch_gains",
    "empirical_receptive_field",
    "predicted_receptive_field",
]
