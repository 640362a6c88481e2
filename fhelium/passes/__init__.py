"""How a program is rewritten: one pass a module, loaded only when a pipeline names it."""

from collections.abc import Callable

from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return a factory for each pass under its command-line name."""

    def get_ckks_annotate_error() -> type[ModulePass]:
        from fhelium.passes.ckks_annotate_error import CkksAnnotateErrorPass

        return CkksAnnotateErrorPass

    def get_ckks_list_required_keys() -> type[ModulePass]:
        from fhelium.passes.ckks_list_required_keys import CkksListRequiredKeysPass

        return CkksListRequiredKeysPass

    def get_convert_ckks_to_rns() -> type[ModulePass]:
        from fhelium.passes.convert_ckks_to_rns import ConvertCkksToRnsPass

        return ConvertCkksToRnsPass

    def get_dist_lower_ciphertext_all_reduce() -> type[ModulePass]:
        from fhelium.passes.dist_lower_ciphertext_all_reduce import (
            DistLowerCiphertextAllReducePass,
        )

        return DistLowerCiphertextAllReducePass

    def get_fhelium_assign_implementations() -> type[ModulePass]:
        from fhelium.passes.fhelium_assign_implementations import (
            FheliumAssignImplementationsPass,
        )

        return FheliumAssignImplementationsPass

    def get_rns_fuse_divisions() -> type[ModulePass]:
        from fhelium.passes.rns_fuse_divisions import RnsFuseDivisionsPass

        return RnsFuseDivisionsPass

    def get_rns_hoist_decompositions() -> type[ModulePass]:
        from fhelium.passes.rns_hoist_decompositions import RnsHoistDecompositionsPass

        return RnsHoistDecompositionsPass

    def get_rns_merge_transforms() -> type[ModulePass]:
        from fhelium.passes.rns_merge_transforms import RnsMergeTransformsPass

        return RnsMergeTransformsPass

    return {
        "ckks-annotate-error": get_ckks_annotate_error,
        "ckks-list-required-keys": get_ckks_list_required_keys,
        "convert-ckks-to-rns": get_convert_ckks_to_rns,
        "dist-lower-ciphertext-all-reduce": get_dist_lower_ciphertext_all_reduce,
        "fhelium-assign-implementations": get_fhelium_assign_implementations,
        "rns-fuse-divisions": get_rns_fuse_divisions,
        "rns-hoist-decompositions": get_rns_hoist_decompositions,
        "rns-merge-transforms": get_rns_merge_transforms,
    }
