"""How a program is rewritten: one pass a module, loaded only when a pipeline names it."""

from collections.abc import Callable

from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return a factory for each pass under its command-line name."""

    def get_ckks_annotate_error() -> type[ModulePass]:
        from fhelium.passes.ckks_annotate_error import CkksAnnotateErrorPass

        return CkksAnnotateErrorPass

    def get_ckks_fuse_rescales() -> type[ModulePass]:
        from fhelium.passes.ckks_fuse_rescales import CkksFuseRescalesPass

        return CkksFuseRescalesPass

    def get_ckks_list_required_keys() -> type[ModulePass]:
        from fhelium.passes.ckks_list_required_keys import CkksListRequiredKeysPass

        return CkksListRequiredKeysPass

    def get_ckks_assign_levels() -> type[ModulePass]:
        from fhelium.passes.ckks_assign_levels import CkksAssignLevelsPass

        return CkksAssignLevelsPass

    def get_ckks_assign_scales() -> type[ModulePass]:
        from fhelium.passes.ckks_assign_scales import CkksAssignScalesPass

        return CkksAssignScalesPass

    def get_ckks_decompose_rotations() -> type[ModulePass]:
        from fhelium.passes.ckks_decompose_rotations import CkksDecomposeRotationsPass

        return CkksDecomposeRotationsPass

    def get_ckks_distribute_weighted_sum() -> type[ModulePass]:
        from fhelium.passes.ckks_distribute_weighted_sum import CkksDistributeWeightedSumPass

        return CkksDistributeWeightedSumPass

    def get_ckks_hoist_rotations() -> type[ModulePass]:
        from fhelium.passes.ckks_hoist_rotations import CkksHoistRotationsPass

        return CkksHoistRotationsPass

    def get_ckks_insert_mod_switch() -> type[ModulePass]:
        from fhelium.passes.ckks_insert_mod_switch import CkksInsertModSwitchPass

        return CkksInsertModSwitchPass

    def get_ckks_insert_relinearize() -> type[ModulePass]:
        from fhelium.passes.ckks_insert_relinearize import CkksInsertRelinearizePass

        return CkksInsertRelinearizePass

    def get_ckks_insert_rescale() -> type[ModulePass]:
        from fhelium.passes.ckks_insert_rescale import CkksInsertRescalePass

        return CkksInsertRescalePass

    def get_ckks_merge_rotations() -> type[ModulePass]:
        from fhelium.passes.ckks_merge_rotations import CkksMergeRotationsPass

        return CkksMergeRotationsPass

    def get_ckks_reorder_sums() -> type[ModulePass]:
        from fhelium.passes.ckks_reorder_sums import CkksReorderSumsPass

        return CkksReorderSumsPass

    def get_ckks_select_parameters() -> type[ModulePass]:
        from fhelium.passes.ckks_select_parameters import CkksSelectParametersPass

        return CkksSelectParametersPass

    def get_convert_ckks_to_rns() -> type[ModulePass]:
        from fhelium.passes.convert_ckks_to_rns import ConvertCkksToRnsPass

        return ConvertCkksToRnsPass

    def get_convert_secure_to_ckks() -> type[ModulePass]:
        from fhelium.passes.convert_secure_to_ckks import ConvertSecureToCkksPass

        return ConvertSecureToCkksPass

    def get_dist_lower_ciphertext_all_reduce() -> type[ModulePass]:
        from fhelium.passes.dist_lower_ciphertext_all_reduce import (
            DistLowerCiphertextAllReducePass,
        )

        return DistLowerCiphertextAllReducePass

    def get_dist_combine_collectives() -> type[ModulePass]:
        from fhelium.passes.dist_combine_collectives import DistCombineCollectivesPass

        return DistCombineCollectivesPass

    def get_dist_overlap_collectives() -> type[ModulePass]:
        from fhelium.passes.dist_overlap_collectives import DistOverlapCollectivesPass

        return DistOverlapCollectivesPass

    def get_dist_verify_spmd() -> type[ModulePass]:
        from fhelium.passes.dist_verify_spmd import DistVerifySpmdPass

        return DistVerifySpmdPass

    def get_fhelium_annotate_cost() -> type[ModulePass]:
        from fhelium.passes.fhelium_annotate_cost import FheliumAnnotateCostPass

        return FheliumAnnotateCostPass

    def get_fhelium_assign_implementations() -> type[ModulePass]:
        from fhelium.passes.fhelium_assign_implementations import (
            FheliumAssignImplementationsPass,
        )

        return FheliumAssignImplementationsPass

    def get_fhelium_assign_in_place() -> type[ModulePass]:
        from fhelium.passes.fhelium_assign_in_place import FheliumAssignInPlacePass

        return FheliumAssignInPlacePass

    def get_mem_insert_transfers() -> type[ModulePass]:
        from fhelium.passes.mem_insert_transfers import MemInsertTransfersPass

        return MemInsertTransfersPass

    def get_rns_fuse() -> type[ModulePass]:
        from fhelium.passes.rns_fuse import RnsFusePass

        return RnsFusePass

    def get_rns_fuse_divisions() -> type[ModulePass]:
        from fhelium.passes.rns_fuse_divisions import RnsFuseDivisionsPass

        return RnsFuseDivisionsPass

    def get_rns_hoist_decompositions() -> type[ModulePass]:
        from fhelium.passes.rns_hoist_decompositions import RnsHoistDecompositionsPass

        return RnsHoistDecompositionsPass

    def get_rns_merge_transforms() -> type[ModulePass]:
        from fhelium.passes.rns_merge_transforms import RnsMergeTransformsPass

        return RnsMergeTransformsPass

    def get_rns_shard_limbs() -> type[ModulePass]:
        from fhelium.passes.rns_shard_limbs import RnsShardLimbsPass

        return RnsShardLimbsPass

    def get_secure_assign_layouts() -> type[ModulePass]:
        from fhelium.passes.secure_assign_layouts import SecureAssignLayoutsPass

        return SecureAssignLayoutsPass

    def get_secure_expand_polynomials() -> type[ModulePass]:
        from fhelium.passes.secure_expand_polynomials import SecureExpandPolynomialsPass

        return SecureExpandPolynomialsPass

    def get_secure_lower_convolutions() -> type[ModulePass]:
        from fhelium.passes.secure_lower_convolutions import SecureLowerConvolutionsPass

        return SecureLowerConvolutionsPass

    def get_secure_minimize_conversions() -> type[ModulePass]:
        from fhelium.passes.secure_minimize_conversions import SecureMinimizeConversionsPass

        return SecureMinimizeConversionsPass

    def get_secure_select_parameters() -> type[ModulePass]:
        from fhelium.passes.secure_select_parameters import SecureSelectParametersPass

        return SecureSelectParametersPass

    return {
        "ckks-annotate-error": get_ckks_annotate_error,
        "ckks-fuse-rescales": get_ckks_fuse_rescales,
        "ckks-list-required-keys": get_ckks_list_required_keys,
        "ckks-assign-levels": get_ckks_assign_levels,
        "ckks-assign-scales": get_ckks_assign_scales,
        "ckks-decompose-rotations": get_ckks_decompose_rotations,
        "ckks-distribute-weighted-sum": get_ckks_distribute_weighted_sum,
        "ckks-hoist-rotations": get_ckks_hoist_rotations,
        "ckks-insert-mod-switch": get_ckks_insert_mod_switch,
        "ckks-insert-relinearize": get_ckks_insert_relinearize,
        "ckks-insert-rescale": get_ckks_insert_rescale,
        "ckks-merge-rotations": get_ckks_merge_rotations,
        "ckks-reorder-sums": get_ckks_reorder_sums,
        "ckks-select-parameters": get_ckks_select_parameters,
        "convert-ckks-to-rns": get_convert_ckks_to_rns,
        "convert-secure-to-ckks": get_convert_secure_to_ckks,
        "dist-lower-ciphertext-all-reduce": get_dist_lower_ciphertext_all_reduce,
        "dist-combine-collectives": get_dist_combine_collectives,
        "dist-overlap-collectives": get_dist_overlap_collectives,
        "dist-verify-spmd": get_dist_verify_spmd,
        "fhelium-annotate-cost": get_fhelium_annotate_cost,
        "fhelium-assign-implementations": get_fhelium_assign_implementations,
        "fhelium-assign-in-place": get_fhelium_assign_in_place,
        "mem-insert-transfers": get_mem_insert_transfers,
        "rns-fuse": get_rns_fuse,
        "rns-fuse-divisions": get_rns_fuse_divisions,
        "rns-hoist-decompositions": get_rns_hoist_decompositions,
        "rns-merge-transforms": get_rns_merge_transforms,
        "rns-shard-limbs": get_rns_shard_limbs,
        "secure-assign-layouts": get_secure_assign_layouts,
        "secure-expand-polynomials": get_secure_expand_polynomials,
        "secure-lower-convolutions": get_secure_lower_convolutions,
        "secure-minimize-conversions": get_secure_minimize_conversions,
        "secure-select-parameters": get_secure_select_parameters,
    }
