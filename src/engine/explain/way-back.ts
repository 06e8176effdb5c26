/**
 * Explains to people whether the upgraded nodes of a rollout can go back to their earlier versions. No decision depends
 * on this explanation.
 */
import {
  lacksBundle,
  pointOfNoReturn,
  type UpgradedNode,
  type WayBack,
  wayBackOfAll,
  wayBackOfNode,
  waysOfDiffering,
} from '../../versions/way-back.ts';
import type { DecisionContext } from '../gates/types.ts';
import { factsOf, hadVersionBefore, reportOf, versionAsked } from '../gates/types.ts';
import { hasDownloadOf } from '../model/known-downloads.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';

type Context = Pick<DecisionContext, 'snapshot' | 'now'>;

/** Returns whether one target can go back; undefined if the target was not upgraded, or if this is unknown. */
export function wayBackOf(context: Context, stage: Stage, target: Target): WayBack | undefined {
  const node = upgradedNode(context, stage, target);
  return node?.from === undefined ? undefined : wayOf(context, node);
}

/** Returns whether all upgraded targets can go back; undefined if this is unknown for every target. */
export function wayBackOfRollout(context: Context): WayBack | undefined {
  if (!recordsWayBack(context)) return undefined;
  const upgraded = context.snapshot.rollout.stages.flatMap((stage) =>
    [...inState(stage, 'done'), ...inState(stage, 'failed')].flatMap(
      (target) => upgradedNode(context, stage, target) ?? [],
    ),
  );
  if (upgraded.every(({ from }) => from === undefined)) return undefined;
  const differing = waysOfDiffering(upgraded, context.now);
  return wayBackOfAll(
    upgraded.map((node) => ({
      ...wayOf(context, node),
      ...differing.get(node.name),
      name: node.name,
      needsBundle: lacksBundle(node),
    })),
  );
}

function upgradedNode(
  { snapshot }: Context,
  stage: Stage,
  target: Target,
): UpgradedNode | undefined {
  if (!recordsWayBack({ snapshot }) || stage.keepsVersion === true) return undefined;
  const facts = factsOf(snapshot, target);
  const { agent, platform, isThere } = facts;
  // A check may refuse a node after its upgrade. Then the node has failed, but it runs the new version.
  const isUpgraded = target.state === 'done' || (target.state === 'failed' && isThere);
  if (!isUpgraded) return undefined;
  const from = reportOf(facts)?.from;
  // If a target already had the version of its signal before, it was not upgraded, so it has no earlier version to go
  // back to.
  if (hadVersionBefore(facts, stage)) return undefined;
  const to = versionAsked(facts, stage);
  const { kept, keptBundle } = agent ?? {};
  const node = { name: target.name, role: stage.role, from, to, platform };
  const hasDownload = hasDownloadOf(snapshot, from, platform);
  return { ...node, kept, keptBundle, hasDownload, ended: target.since };
}

/** Returns true if agents report what a target needs to go back. Where targets wait for the version rules, no agent reports. */
function recordsWayBack({ snapshot }: Pick<Context, 'snapshot'>): boolean {
  const { apiServers } = snapshot.cluster;
  return apiServers !== undefined && !snapshot.abilities.waitsForVersions;
}

function wayOf({ snapshot, now }: Context, node: UpgradedNode): WayBack {
  const { apiServers = [] } = snapshot.cluster;
  const { mostBehind } = snapshot.abilities;
  const servers = apiServers.map(({ version }) => version);
  return wayBackOfNode(node, servers, now, mostBehind);
}

/** Returns sentences about the steps that cannot be undone and that have not begun yet. */
export function pointsOfNoReturn({ snapshot }: Pick<Context, 'snapshot'>): string[] {
  const { apiServers } = snapshot.cluster;
  if (!apiServers) return [];
  const sentences = snapshot.rollout.stages
    .filter(({ role, keepsVersion }) => role === 'controller' && keepsVersion !== true)
    .flatMap((stage) =>
      inState(stage, 'pending').flatMap(
        (target) => pointOfNoReturn(factsOf(snapshot, target).version, stage.version) ?? [],
      ),
    );
  return [...new Set(sentences)];
}
