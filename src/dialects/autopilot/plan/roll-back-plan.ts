/**
 * Creates the Plan that rolls back a run of k0s: first workers, then controllers, each to the version that it ran
 * before the run.
 */

import { PLAN_NAME, type Plan, type PlanCommand, plans } from '../../../api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { EarlierRun } from '../../../engine/model/earlier-runs.ts';
import {
  earlierRunsIn,
  ROLLS_BACK_ANNOTATION,
  versionBefore,
} from '../../../engine/model/earlier-versions.ts';
import { isDownloadOf, type KnownDownload } from '../../../engine/model/known-downloads.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import { apiVersionOf, kubeletVersionOf, nodes } from '../../../kube/resources.ts';
import { agentOf, type KeptFacts } from '../../../signal/agent-presence.ts';
import {
  type Annotations,
  decodeReport,
  decodeSignal,
  installedVersion,
  provenVersion,
} from '../../../signal/annotations.ts';
import { keptFileUrl } from '../../../signal/kept-file.ts';
import { controlNodes, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { RefitError } from '../../../util/errors.ts';
import { inRepository } from '../../../util/home.ts';
import { defined } from '../../../util/json.ts';
import { listedSentences } from '../../../util/phrases.ts';
import { isNewerMinor, parseVersion } from '../../../util/version.ts';
import { isKubernetesPart, mayBePartOf } from '../../../versions/release-parts.ts';
import { differingKept, lackOfKept } from '../../../versions/way-back.ts';

/** The present state of a node. */
export interface PresentNode {
  readonly role: Role;
  readonly name: string;
  readonly version: string | undefined;
  /** `<os>-<architecture>`; undefined if the labels of the node do not contain it. */
  readonly platform: string | undefined;
  /** The uid of the plan that sent the last signal to the node; undefined if no signal names a plan. */
  readonly signalledBy: string | undefined;
  /**
   * The version that the node's agent reported as installed by the last signal; undefined unless that signal is
   * completed.
   */
  readonly installed: string | undefined;
  /** The version that runs after the last signal, as far as the node's agent proved it. */
  readonly proven: string | undefined;
  /** The version that the node's agent reported as running before the last signal; undefined if it reported none. */
  readonly reportedFrom: string | undefined;
  /** The version that the last signal installs; undefined if it installs none. */
  readonly asked: string | undefined;
  /** The previous binary of the host, as its agent announces it. */
  readonly kept?: KeptFacts | undefined;
}

export interface GoingBack {
  readonly role: Role;
  readonly name: string;
  readonly platform: string | undefined;
  readonly from: string;
  readonly to: string;
  /** The previous binary of the host, as its agent announces it. */
  readonly kept?: KeptFacts | undefined;
}

type Payload = Pick<KnownDownload, 'url' | 'sha256'>;

export interface WaysBack {
  readonly moves: readonly GoingBack[];
  /** Sentences about nodes of the run that need not go back. */
  readonly left: readonly string[];
  /** True if each node of the run still runs what it ran before, so that nothing is to be undone. */
  readonly areUnmoved?: boolean;
  /** The nodes of the run that may run a version of this run, and cannot go back. */
  readonly unable: readonly UnableNode[];
}

export interface UnableNode {
  readonly role: Role;
  readonly name: string;
  readonly sentence: string;
  /**
   * `lags`: the object shows another version than the agent reported. `untold`: the object shows no version.
   * `unrecorded`: no record contains the earlier version. `gone`: the cluster has no object of the node.
   */
  readonly why: 'lags' | 'untold' | 'unrecorded' | 'gone';
}

/** Returns the nodes of the cluster. A controller that is a worker, too, counts as a controller. */
export function presentNodes(world: World): PresentNode[] {
  const controllers = world.list(controlNodes);
  const names = new Set(controllers.map(({ metadata }) => metadata.name));
  const workers = world.list(nodes).filter(({ metadata }) => !names.has(metadata.name));
  return [
    ...workers.map((node) => ({
      role: 'worker' as const,
      name: node.metadata.name,
      version: kubeletVersionOf(node),
      platform: platformOf(node),
      kept: agentOf(node).kept,
      ...lastSignalOn(node.metadata.annotations),
    })),
    ...controllers.map((node) => ({
      role: 'controller' as const,
      name: node.metadata.name,
      version: node.status?.k0sVersion,
      platform: platformOf(node),
      kept: agentOf(node).kept,
      ...lastSignalOn(node.metadata.annotations),
    })),
  ];
}

function lastSignalOn(
  annotations: Annotations = {},
): Pick<PresentNode, 'signalledBy' | 'installed' | 'proven' | 'reportedFrom' | 'asked'> {
  const signal = decodeSignal(annotations);
  return {
    reportedFrom: signal && decodeReport(annotations, signal.created)?.from,
    asked: signal?.command.kind === 'k0supdate' ? signal.command.version : undefined,
    signalledBy: annotations[ROLLOUT_ANNOTATION]?.split('/')[0],
    installed: installedVersion(annotations),
    proven: provenVersion(annotations),
  };
}

/**
 * Returns the number of workers that the Plan upgrades at once. A Plan that rolls back may begin with updates that have
 * no workers.
 */
export function concurrentIn({ spec: { commands } }: Plan): number {
  const limits = commands.flatMap(({ k0supdate }) => k0supdate?.targets.workers?.limits ?? []);
  return limits[0]?.concurrent ?? 1;
}

/**
 * Returns which nodes of the run go back, which nodes stay, and which nodes cannot go back. A node stays if it does not
 * run a version that the run installed, or if one of the runs in `later` moved it. `later` contains the runs after this
 * run, the newest first. If an object shows the old version, but the agent of the node has reported another version, it
 * is unclear whether the node must go back, because the kubelet, or k0s, writes the new version later.
 */
export function waysBack(
  run: NodeRolloutRun,
  nodes: readonly PresentNode[],
  later: readonly NodeRolloutRun[],
): WaysBack {
  const record = earlierRunsIn([run])[0];
  if (record === undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `run ${run.id} does not record which versions its nodes ran before, so Refit does not know where to go back to`,
      { hint: `write a Plan with the old version by hand: ${inRepository('docs/roll-back.md')}` },
    );
  const moves: GoingBack[] = [];
  const left: { readonly sentence: string; readonly isUnmoved?: boolean }[] = [];
  const unable: UnableNode[] = [];
  for (const node of nodes) {
    const { role, name } = node;
    const isMember = node.signalledBy === run.planUid;
    const isNamed = record.before.some((each) => each.role === role && each.nodes.includes(name));
    if (!isMember && !isNamed) continue;
    const way = wayOf(node, { run, record, later, isMember });
    if ('to' in way) moves.push(way);
    else if ('why' in way) unable.push({ role, name, ...way });
    else left.push(way);
  }
  const all = [...unable, ...goneNodes(record, nodes)];
  const areUnmoved =
    moves.length + all.length === 0 &&
    left.length > 0 &&
    left.every(({ isUnmoved }) => isUnmoved === true);
  return { moves, left: left.map(({ sentence }) => sentence), unable: all, areUnmoved };
}

interface RunRecord {
  readonly run: NodeRolloutRun;
  readonly record: EarlierRun;
  readonly later: readonly NodeRolloutRun[];
  /** True if the last signal of the node is of this run. */
  readonly isMember: boolean;
}

function wayOf(
  node: PresentNode,
  { run, record, later, isMember }: RunRecord,
):
  | GoingBack
  | Pick<UnableNode, 'sentence' | 'why'>
  | { readonly sentence: string; readonly isUnmoved?: boolean } {
  const { role, name, version, platform, installed, kept } = node;
  const reached = (run.downloads ?? []).map((each) => each.version);
  const recorded = versionBefore(record, role, name, isMember);
  const to = isMember ? exactBefore(recorded, node, reached) : recorded;
  const exact = exactVersionOf(node);
  const isReached = reached.some((each) => exact === undefined || mayBePartOf(exact, each));
  const mover = moverAmong(later, node);
  const foreign = `${name} runs ${exact}, which this run did not install`;
  if (to === undefined)
    return isReached
      ? {
          sentence: `${name}: no record names the version that it ran before`,
          why: 'unrecorded',
        }
      : { sentence: foreign };
  if (version === undefined || exact === undefined)
    return { sentence: `${name}: its present version is unknown`, why: 'untold' };
  // The agent has proved no build, so any build of the release may run. A node that runs the earlier build already
  // finishes its signal without a change.
  const isAnyBuild = isMember && isReached && isKubernetesPart(exact);
  if (mayBePartOf(exact, to) && !isAnyBuild) {
    const isLate = isMember && installed !== undefined && !mayBePartOf(version, installed);
    return isLate
      ? {
          sentence: `${name} reported that ${installed} is installed, but still shows ${version}`,
          why: 'lags',
        }
      : { sentence: `${name} still runs ${to}`, isUnmoved: true };
  }
  if (!isReached) return { sentence: foreign };
  if (mover !== undefined)
    return {
      sentence: `${name} was moved later by run ${mover.id}, which started at ${mover.started}`,
    };
  if (isKubernetesPart(to))
    return {
      sentence: `${name}: no record names the build of ${to} that it ran before`,
      why: 'unrecorded',
    };
  return { role, name, platform, from: exact, to, ...defined({ kept }) };
}

/** Returns the nodes that the record of the run names, and that the cluster does not have any more. */
function goneNodes({ before }: EarlierRun, nodes: readonly PresentNode[]): UnableNode[] {
  const present = new Set(nodes.map(({ name }) => name));
  return before.flatMap(({ role, nodes: names }) =>
    names
      .filter((name) => !present.has(name))
      .map((name) => ({
        role,
        name,
        sentence: `${name}: the cluster has no ${OBJECTS[role].kind} with this name`,
        why: 'gone' as const,
      })),
  );
}

const OBJECTS = { controller: controlNodes, worker: nodes } as const;

/**
 * Returns the version that the node ran before the run, with its build if the agent reported the build. The record of a
 * worker may contain only the version of its kubelet, which has no build. The report counts only if it belongs to a
 * signal that installs a version of this run, and if no earlier attempt of this run had installed the version that it
 * names.
 */
function exactBefore(
  recorded: string | undefined,
  { asked, reportedFrom }: PresentNode,
  reached: readonly string[],
): string | undefined {
  if (reportedFrom === undefined || asked === undefined) return recorded;
  if (!reached.includes(asked) || reached.includes(reportedFrom)) return recorded;
  return recorded !== undefined && mayBePartOf(recorded, reportedFrom) ? reportedFrom : recorded;
}

/**
 * Returns the version that the agent proved, if the version that the object shows may be a short form of it;
 * otherwise the version that the object shows. The Node of a worker does not show the build of k0s.
 */
function exactVersionOf({ version, proven }: PresentNode): string | undefined {
  if (version === undefined || proven === undefined) return version;
  return mayBePartOf(version, proven) ? proven : version;
}

/**
 * Returns the earliest of the later runs that recorded the node, if the version in that record differs from the version
 * that the node runs now. Otherwise returns undefined: no later run recorded the node, or the later runs together have
 * not changed its version.
 */
function moverAmong(
  later: readonly NodeRolloutRun[],
  node: PresentNode,
): NodeRolloutRun | undefined {
  const { role, name, signalledBy } = node;
  const version = exactVersionOf(node);
  for (const run of later.toReversed()) {
    const [record] = earlierRunsIn([run]);
    const before = record && versionBefore(record, role, name, signalledBy === run.planUid);
    if (before === undefined) continue;
    const isUnmoved =
      version === undefined || mayBePartOf(version, before) || mayBePartOf(before, version);
    return isUnmoved ? undefined : run;
  }
  return undefined;
}

/** Returns the controllers that would go to an older minor version, which Kubernetes does not support. */
export function stuckControllers({ moves }: WaysBack): GoingBack[] {
  return moves.filter(({ role, from, to }) => {
    const [now, before] = [from, to].map((version) => parseVersion(version));
    return role === 'controller' && !(now && before && !isNewerMinor(now, before));
  });
}

/**
 * Returns the workers that would go to a newer minor version than a controller runs now. This happens if the run installed an older minor
 * version. Such workers must not go before the controllers.
 */
export function aheadWorkers({ moves }: WaysBack): GoingBack[] {
  const isAhead = (to: string, from: string): boolean => {
    const [next, server] = [to, from].map((version) => parseVersion(version));
    return next !== undefined && server !== undefined && isNewerMinor(next, server);
  };
  const controllers = moves.filter(({ role }) => role === 'controller');
  return moves.filter(
    ({ role, to }) => role === 'worker' && controllers.some(({ from }) => isAhead(to, from)),
  );
}

/**
 * Returns the Plan. If no download of a version is known, the Plan names the file that every node keeps, by its sha256.
 * Throws REFIT_CONTROL if the nodes do not all keep the same file. `now` is in RFC 3339 format.
 */
export function planBack(
  { moves }: WaysBack,
  {
    run,
    downloads,
    concurrent,
  }: {
    readonly run: string;
    readonly downloads: readonly KnownDownload[];
    readonly concurrent: number;
  },
  now: string,
): Plan {
  const roles: readonly Role[] = ['worker', 'controller'];
  const commands = roles.flatMap((role): PlanCommand[] => {
    const byVersion = Map.groupBy(
      moves.filter((move) => move.role === role),
      ({ to }) => to,
    );
    return [...byVersion].map(([version, group]) => {
      const nodes = group.map(({ name }) => name);
      const targets = { discovery: { static: { nodes } } };
      return {
        k0supdate: {
          version,
          platforms: platformsFor(version, group, downloads, Date.parse(now)),
          targets:
            role === 'worker'
              ? { workers: { ...targets, limits: { concurrent } } }
              : { controllers: targets },
        },
      };
    });
  });
  return {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: PLAN_NAME, annotations: { [ROLLS_BACK_ANNOTATION]: run } },
    spec: { id: `back-${now}`, timestamp: now, commands },
  };
}

function platformsFor(
  version: string,
  group: readonly GoingBack[],
  known: readonly KnownDownload[],
  now: number,
): Record<string, Payload> {
  const own = known.filter((each) => isDownloadOf(each, version));
  const byPlatform = Map.groupBy(group, ({ platform }) => platform);
  const kept = [...byPlatform].flatMap(([platform, nodes]) =>
    platform !== undefined && own.some((each) => each.platform === platform)
      ? []
      : [[platform ?? '', keptFileOf(version, platform, nodes, now)] as const],
  );
  return Object.fromEntries<Payload>([
    // The first entry of a platform must be used: the entries of the user are before the entries of the runs, and the
    // newest run is before the others. The list is reversed, because `fromEntries` keeps the last entry.
    ...own
      .toReversed()
      .map(
        ({ platform, url, sha256 }) =>
          [platform, sha256 === undefined ? { url } : { url, sha256 }] as const,
      ),
    ...kept,
  ]);
}

/**
 * Returns the file that all of these nodes keep. Nodes announce the sha256 themselves, so it may be wrong. A wrong
 * sha256 makes only the update of that node fail: an agent takes its kept file only if the file has the sha256 of the
 * Plan, and the address leads to no other file.
 */
function keptFileOf(
  version: string,
  platform: string | undefined,
  nodes: readonly GoingBack[],
  now: number,
): Payload {
  const [first] = nodes;
  const lacks = nodes.flatMap(({ name, kept }) => {
    const lack = lackOfKept(kept, version, now);
    return lack === undefined ? [] : [`${name}: ${lack}`];
  });
  const sums = nodes.map(({ name, kept }) => ({ name, sha256: kept?.sha256 }));
  const differ = lacks.length === 0 ? differingKept(sums) : undefined;
  const sha256 = first?.kept?.sha256;
  const causes = differ === undefined ? lacks : [differ];
  if (platform !== undefined && causes.length === 0 && sha256 !== undefined)
    return { url: keptFileUrl(version), sha256 };
  const unknown = nodes.map(({ name }) => `${name} has no labels that say its platform`);
  throw new RefitError(
    'REFIT_CONTROL',
    `no recorded run downloaded ${version} for ${platform ?? 'an unknown platform'}, and not every node can take a file that it keeps: ${listedSentences(platform === undefined ? unknown : causes)}`,
    {
      hint: `add --url ${platform ?? 'PLATFORM'}=https://… and --sha256 ${platform ?? 'PLATFORM'}=…`,
    },
  );
}
