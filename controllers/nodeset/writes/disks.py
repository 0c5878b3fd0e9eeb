"""Creates and deletes volume claims. Thin."""

from collections.abc import Collection, Iterable

from controllers.nodeset import pods as build
from controllers.nodeset.observe import other_owner
from controllers.nodeset.rounds import Round
from controllers.runtime.structs import CLAIMS
from controllers.runtime.writer import Deletion


async def create_claims(round_: Round, ordinals: Iterable[int]) -> bool:
    """Creates the claims of these ordinals; False when the API server refused some. A claim that exists does not count as an error."""
    claims = [claim for ordinal in ordinals for claim in build.build_claims(round_.nodeset, ordinal)]
    return not round_.fail_any("volume claim", await round_.world.writer.create_many(CLAIMS, claims))


async def delete_claims(round_: Round, ordinals: Collection[int]) -> None:
    """Deletes the claims of these ordinals that nobody else owns."""
    claims, gone = round_.world.claims.by_index("nodeset", round_.key) if ordinals else [], frozenset(ordinals)
    ours = [claim.metadata for claim in claims if not other_owner(round_.nodeset, claim.metadata)]
    chosen = [meta for meta in ours if build.claim_ordinal(round_.key[1], meta.name) in gone]
    deletions = [Deletion(meta.key, meta.uid) for meta in chosen if meta.deletion_timestamp is None]
    round_.fail_any("deletion of a claim", await round_.world.writer.delete_many(CLAIMS, deletions))
