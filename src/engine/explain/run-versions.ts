/**
 * Finds what a run of a plan changes: the versions that its nodes ran before the run, and the files that they download.
 * The size of the result is bounded.
 */
import { LONGEST_URL, MOST, type NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { isKubernetesPart, mayBePartOf } from '../../versions/release-parts.ts';
import { factsOf, reportOf, versionAsked, type WithFacts } from '../gates/types.ts';
import type { Observation } from '../model/facts.ts';
import type { Role, Rollout, Stage, Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

export type RunVersions = Pick<NodeRolloutRun, 'before' | 'downloads'>;
type Downloads = NonNullable<NodeRolloutRun['downloads']>;
type Before = NonNullable<NodeRolloutRun['before']>[number];

const LONGEST_VERSION = 128;
const LONGEST_SHA256 = 64;
const LONGEST_PLATFORM = 64;

/**
 * Returns the versions and the downloads that are known when the leader observes the run for the first time. A member
 * that would have no entries is absent.
 */
export function runVersions(snapshot: Snapshot): RunVersions {
  const before = versionsBefore(snapshot);
  const downloads = downloadsIn(snapshot.rollout.stages);
  return {
    ...(before.length > 0 ? { before } : {}),
    ...(downloads.length > 0 ? { downloads } : {}),
  };
}

/**
 * Returns the downloads of a run whose plan may have been edited; undefined if there are no downloads. The downloads of
 * the present plan come first, and replace earlier downloads of the same version and platform. The other earlier
 * downloads follow, because some nodes may run those versions.
 */
export function downloadsSince(
  { stages }: Pick<Rollout, 'stages'>,
  earlier: Downloads = [],
): Downloads | undefined {
  const present = downloadsIn(stages);
  const replaced = new Set(present.map(keyOf));
  const kept = earlier.filter((each) => !replaced.has(keyOf(each)));
  const all = [...present, ...kept].slice(0, MOST.downloads);
  return all.length > 0 ? all : undefined;
}

/**
 * Returns the versions before the run, with what nodes have reported since they were recorded. A report replaces only a
 * version that is unknown or less precise: the kubelet of some releases reports no build, and the agent of the node
 * reports it later. Entries without names stay, because the nodes that they stand for may have run different builds.
 */
export function versionsBeforeSince(
  snapshot: Pick<Snapshot, 'rollout'> & WithFacts,
  earlier: readonly Before[] = [],
): Before[] | undefined {
  if (earlier.length === 0) return undefined;
  const refined = earlier.flatMap((entry) => withReports(entry, snapshot));
  const groups = Map.groupBy(refined, ({ role, version, others }) =>
    others === true ? `${role} others` : `${role} ${version ?? ''}`,
  );
  const merged = [...groups.values()].flatMap(([first, ...more]) =>
    first === undefined
      ? []
      : [more.length === 0 ? first : { ...first, nodes: namesIn([first, ...more]) }],
  );
  return merged.length > MOST.before ? [...earlier] : merged;
}

function namesIn(entries: readonly Before[]): string[] {
  return entries.flatMap(({ nodes = [] }) => nodes);
}

/** Returns the entry, divided by the versions that its nodes have reported. */
function withReports(
  entry: Before,
  { rollout, targets }: Pick<Snapshot, 'rollout'> & WithFacts,
): Before[] {
  const { role, version, nodes = [], others } = entry;
  if (others === true || (version !== undefined && !isKubernetesPart(version))) return [entry];
  const names = new Set(nodes);
  const told = new Map<string, string>();
  for (const stage of rollout.stages) {
    if (stage.role !== role || stage.keepsVersion === true) continue;
    for (const target of stage.targets) {
      if (!names.has(target.name) || target.state === 'pending' || told.has(target.name)) continue;
      const from = reportOf(factsOf({ targets }, target))?.from;
      if (from !== undefined && isEarlier(from, version, rollout)) told.set(target.name, from);
    }
  }
  if (told.size === 0) return [entry];
  const groups = Map.groupBy(nodes, (name) => told.get(name) ?? version);
  return [...groups].map(([found, some]) => ({
    ...entry,
    ...(found === undefined ? {} : { version: found }),
    nodes: some,
  }));
}

/**
 * Returns true if a report may name the version before the run. A second attempt in the same run may start from a
 * version of this run.
 */
function isEarlier(from: string, recorded: string | undefined, { stages }: Rollout): boolean {
  if (from.length > LONGEST_VERSION || stages.some(({ version }) => version === from)) return false;
  return recorded === undefined || (recorded !== from && mayBePartOf(recorded, from));
}

function versionsBefore(snapshot: Snapshot): Before[] {
  let room: number = MOST.namesBefore;
  const roles: readonly Role[] = ['controller', 'worker'];
  return roles.flatMap((role) => {
    const entries = entriesOf(snapshot, role, room);
    room -= entries.reduce((sum, { nodes = [] }) => sum + nodes.length, 0);
    return entries;
  });
}

/**
 * Returns the entries of one role. The entries list at most `room` names of nodes. If there are more nodes, the entry
 * of the most common version lists no names and has `others`. Such an entry applies to all nodes that no other entry
 * lists. If `room` is too small even for the nodes of the other
 * versions, or if there are too many versions, the entry with `others` is omitted.
 */
function entriesOf(snapshot: Snapshot, role: Role, room: number): Before[] {
  const found = versionsByName(snapshot, role);
  const groups = Map.groupBy(found.keys(), (name) => found.get(name) ?? '');
  const most = MOST.before / 2;
  const bySize = [...groups].toSorted(([, a], [, b]) => b.length - a.length);
  const isWhole = bySize.length <= most;
  const common = bySize.find(([version]) => version !== '');
  const mustFold = found.size > room || !isWhole;
  const rest = bySize.filter((group) => !mustFold || group !== common);
  const named = rest.reduce((sum, [, names]) => sum + names.length, 0);
  const fits = isWhole && named <= room;
  let left = room;
  const entries = rest.slice(0, most).flatMap(([version, names]): Before[] => {
    const nodes = names.slice(0, left);
    left -= nodes.length;
    return nodes.length === 0 ? [] : [{ role, ...(version === '' ? {} : { version }), nodes }];
  });
  if (!mustFold || !fits || common === undefined) return entries;
  const [version] = common;
  return [{ role, version, others: true }, ...entries];
}

/**
 * Returns the version that each target ran before the plan, by name of the target. If several stages contain a target,
 * the version before the first of these stages counts.
 */
function versionsByName(snapshot: Snapshot, role: Role): Map<string, string | undefined> {
  const found = new Map<string, string | undefined>();
  for (const stage of snapshot.rollout.stages) {
    if (stage.role !== role || stage.keepsVersion === true) continue;
    for (const target of stage.targets)
      found.getOrInsertComputed(target.name, () => versionOf(snapshot, stage, target));
  }
  return found;
}

/**
 * Returns the version that the target ran before the run; undefined if it is unknown, for example because the run may have
 * installed the version that the target shows.
 */
function versionOf(snapshot: Snapshot, stage: Stage, target: Target): string | undefined {
  const facts = factsOf(snapshot, target);
  const { version, earlierVersion, observation, isThere } = facts;
  const reported = earlierVersion ?? reportOf(facts)?.from;
  const mayBeNew = version !== undefined && mayBePartOf(version, versionAsked(facts, stage));
  const isMoved = mayHaveChanged(target, observation) && (isThere || mayBeNew);
  const before = reported ?? (isMoved ? undefined : version);
  return before === undefined || before.length > LONGEST_VERSION ? undefined : before;
}

/**
 * Returns false if the run cannot have changed the version of the target yet. The version that such a target shows is
 * the version before the run, even if it is the version that the run installs.
 */
function mayHaveChanged({ state }: Target, observation: Observation): boolean {
  if (state !== 'pending' && state !== 'intended') return true;
  switch (observation.kind) {
    case 'none':
      return observation.begun === true;
    case 'sent':
      return false;
    case 'working':
      return observation.cancellable !== true;
    case 'failed':
      return observation.refused !== true;
    case 'succeeded':
      return true;
  }
}

function downloadsIn(stages: readonly Stage[]): Downloads {
  const all = stages
    // An edit can make a plan invalid. The stages of an invalid plan may have no version.
    .filter(
      ({ keepsVersion, targets, version }) =>
        keepsVersion !== true && targets.length > 0 && version !== '',
    )
    .flatMap(({ version, payloads = {} }) =>
      Object.entries(payloads).map(([platform, payload]) => ({ version, platform, ...payload })),
    );
  const unique = new Map(all.map((each) => [keyOf(each), each]));
  return [...unique.values()].filter(isShort).slice(0, MOST.downloads);
}

function keyOf({ version, platform }: Pick<Downloads[number], 'version' | 'platform'>): string {
  return `${version} ${platform}`;
}

function isShort(download: { version: string; platform: string; url: string; sha256?: string }) {
  const { version, platform, url, sha256 = '' } = download;
  return (
    version.length <= LONGEST_VERSION &&
    platform.length <= LONGEST_PLATFORM &&
    url.length <= LONGEST_URL &&
    sha256.length <= LONGEST_SHA256
  );
}
