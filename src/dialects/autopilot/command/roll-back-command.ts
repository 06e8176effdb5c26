/** Implements `refit rollback` for k0s: replaces an ended Plan by a Plan that returns its nodes to their earlier versions. */

import { PLAN_NAME, type Plan } from '../../../api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { awaitedChecks } from '../../../cli/advice/plan-flag.ts';
import { say } from '../../../cli/controls/control-command.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import {
  checksOf,
  isWanted,
  type ReasonedFlags,
  type RollBackFlags,
  refuseOpenPlan,
  runOf,
} from '../../../cli/controls/roll-back.ts';
import { rolledBackRunName, runNameIn } from '../../../cli/history/run-names.ts';
import { table } from '../../../cli/phrases.ts';
import { askLeader } from '../../../cli/status/load.ts';
import type { Inspection } from '../../../cli/status/observe.ts';
import type { Session, SessionParts } from '../../../cli/status/status-session.ts';
import { askUserName } from '../../../cli/user-name.ts';
import { refusalsOf } from '../../../engine/assess/advance.ts';
import { refusalSentence } from '../../../engine/assess/roll-back.ts';
import type { World } from '../../../engine/contract/world.ts';
import { answered } from '../../../engine/model/asked.ts';
import {
  earlierRunsIn,
  ROLLS_BACK_REASON_ANNOTATION,
} from '../../../engine/model/earlier-versions.ts';
import { knownDownloads } from '../../../engine/model/known-downloads.ts';
import { qualifiedRunId, runIdIn } from '../../../engine/model/runs.ts';
import { policyOfPlan } from '../../../engine/policy/choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gatherPlanned } from '../../../engine/snapshot/gather.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeReport, decodeSignal } from '../../../signal/annotations.ts';
import { isKeptFileUrl } from '../../../signal/kept-file.ts';
import { controlNodes, isK0sLeader, SIGNAL_DATA_ANNOTATION } from '../../../signal/names.ts';
import { snapshotSentence } from '../../../signal/snapshot-sentence.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { failing, RefitError } from '../../../util/errors.ts';
import { listed, listedSentences } from '../../../util/phrases.ts';
import { printable } from '../../../util/printable.ts';
import { writeYaml } from '../../../util/yaml.ts';
import { autopilot } from '../plan/autopilot-dialect.ts';
import { problemsOf } from '../plan/problems.ts';
import {
  aheadWorkers,
  concurrentIn,
  planBack,
  presentNodes,
  stuckControllers,
  type UnableNode,
  type WaysBack,
  waysBack,
} from '../plan/roll-back-plan.ts';
import { checkReplacement, replacePlan } from './replace-plan.ts';

const refuse = failing('REFIT_CONTROL');

/** The run to roll back, and the functions that check and write the new Plan that rolls the run back. */
export interface WayBackParts {
  readonly world: World;
  readonly history: readonly NodeRolloutRun[];
  readonly run: NodeRolloutRun;
  /** The number of workers that are rolled back at once. */
  readonly concurrent: number;
  /** Returns sentences that say what happens to the Plan of the run. */
  readonly outcome: (ways: WaysBack) => readonly string[];
  /** Makes the API server check the new Plan without storing it. */
  readonly check: (plan: Plan) => Promise<void>;
  readonly write: (plan: Plan) => Promise<void>;
}

/** Rolls back the k0s Plan that the caller has chosen. */
export async function rollBackK0sPlan(
  session: Session,
  old: Inspection,
  flags: ReasonedFlags,
  parts: SessionParts,
): Promise<void> {
  const now = parts.clock.now();
  refuseOpenPlan(old);
  await refuseOtherLeader(session, now);
  const way: WayBackParts = {
    ...(await runOf(session, old, flags)),
    world: old.world,
    concurrent: concurrentIn(old.plan as Plan),
    outcome: () => [
      'The Plan is replaced, and its record is lost; the NodeRollout keeps its history. Image bundles stay on the disk.',
    ],
    check: async (plan) => await checkReplacement(session, old, plan, now),
    write: async (plan) => await replacePlan(session, old, plan, now),
  };
  await goBack(session, way, flags, parts);
}

/** Shows which nodes go back, asks the user, and writes the Plan that rolls them back. */
export async function goBack(
  session: Session,
  way: WayBackParts,
  flags: ReasonedFlags,
  parts: SessionParts,
): Promise<void> {
  refuseImage(flags);
  const { history, run, world, concurrent } = way;
  if (flags.run === undefined) refuseUnfinishedWayBack(history, run);
  const all = waysBack(run, presentNodes(world), laterRuns(history, run));
  const ways = withoutNodes(all, flags.skipNode ?? []);
  const snapshots = snapshotsOf(world, history);
  refuseImpossible(ways, run, snapshots);
  const recorded = knownDownloads(history);
  const downloads = [...given(flags, ways, recorded), ...recorded];
  const by = await askUserName(session);
  const made = planBack(
    ways,
    { run: qualifiedRunId(run), downloads, concurrent },
    rfc3339(parts.clock.now()),
  );
  refuseInvalid(made);
  const policy = policyOfPlan(autopilot, session.viewParts.policies.list(), made, DEFAULT_POLICY, {
    world,
  });
  refuseAsLeader(made, policy, way, parts.clock.now());
  const plan = annotated(made, { [ROLLS_BACK_REASON_ANNOTATION]: `${by}: ${flags.reason.trim()}` });
  if (flags.output === 'yaml') return parts.output.write(writeYaml(plan));
  say(parts, [
    ...shown(ways, run, history),
    ...keptFilesIn(plan),
    ...awaitedChecks({ dialect: autopilot.name, name: PLAN_NAME }, checksOf(run, policy)),
    ...way.outcome(ways),
    ...snapshots.map((each) => `not restored: the snapshot ${each}`),
    ...dryRunLines(flags),
  ]);
  if (flags.dryRun === 'client') return;
  await way.check(plan);
  if (flags.dryRun === 'server' || !(await isWanted(flags, parts))) return;
  await way.write(plan);
  say(parts, ['The Plan that goes back is written. Follow it with: refit status --watch']);
}

/**
 * Returns the runs after `run` that may have moved nodes to other versions. A refused run moved no node. A run that rolled `run` back is
 * left out, too, because the user may continue that roll-back.
 */
function laterRuns(history: readonly NodeRolloutRun[], run: NodeRolloutRun): NodeRolloutRun[] {
  return history
    .slice(0, history.indexOf(run))
    .filter(
      ({ phase, rollsBack }) => phase !== 'invalid' && rollsBack?.run !== qualifiedRunId(run),
    );
}

function refuseImage({ image }: RollBackFlags): void {
  if (image !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--image is for Plans of Rancher: a k0s Plan downloads a binary, which --url names',
    );
}

/** Rejects with REFIT_CONTROL while k0s's own leader carries plans out. */
export async function refuseOtherLeader(session: Session, now: number): Promise<void> {
  const leader = await askLeader(session, now);
  if ('holder' in leader && leader.state !== 'silent' && isK0sLeader(leader.holder))
    refuse(
      `k0s's own leader (${leader.holder}) carries plans out, and it would start controllers at once: run this when refit controller holds the Lease`,
    );
}

/**
 * Throws REFIT_CONTROL if `run` was itself a roll-back and did not end as done, because it is not clear whether the
 * user wants to continue that roll-back or to undo it.
 */
function refuseUnfinishedWayBack(history: readonly NodeRolloutRun[], run: NodeRolloutRun): void {
  if (run.rollsBack === undefined || run.phase === 'done') return;
  const name = runNameIn(history, run);
  const earlier = rolledBackRunName(history, run.rollsBack.run);
  const message = `run ${name} rolled run ${earlier} back and ended as ${run.phase}, so it is not clear which of them you mean`;
  const hint = `to continue that roll-back, pass --run ${earlier}; to undo it, pass --run ${name}`;
  throw new RefitError('REFIT_CONTROL', message, { hint });
}

/** Throws REFIT_CONTROL if no node goes back, or if a node must not go back. */
export function refuseImpossible(
  ways: WaysBack,
  run: Pick<NodeRolloutRun, 'id' | 'rollsBack'>,
  snapshots: readonly string[],
): void {
  refuseUnable(ways.unable);
  const [stuck] = stuckControllers(ways);
  if (stuck !== undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `controller ${stuck.name} would go from ${stuck.from} to the older minor version ${stuck.to}, which Kubernetes does not support: the newer API server may have stored objects that the older one cannot read`,
      {
        hint: [
          'restore a backup of etcd instead; everything that was written after the backup is lost',
          ...snapshots.map((each) => `there is a snapshot ${each}`),
        ].join('; '),
      },
    );
  const [ahead] = aheadWorkers(ways);
  if (ahead !== undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `worker ${ahead.name} would go from ${ahead.from} to the newer minor version ${ahead.to}: a roll-back changes workers before controllers, so the kubelet of this worker would be newer than an API server`,
      { hint: `apply a Plan with ${ahead.to} instead, which upgrades the controllers first` },
    );
  if (ways.moves.length > 0) return;
  if (ways.areUnmoved === true)
    throw new RefitError(
      'REFIT_CONTROL',
      listedSentences([
        `run ${run.id} left no node at another version, so nothing is to be undone`,
        ...ways.left,
      ]),
      {
        hint: 'to go to another version, use refit upgrade; to undo an earlier run, see refit history, and name it with --run',
      },
    );
  const another =
    run.rollsBack === undefined ? 'another one' : `this run or run ${runIdIn(run.rollsBack.run)}`;
  throw new RefitError(
    'REFIT_CONTROL',
    listedSentences([`no node goes back from run ${run.id}`, ...ways.left]),
    { hint: `see the runs with \`refit history\`, and name ${another} with --run` },
  );
}

/** Throws REFIT_CONTROL if nodes of the run cannot go back. The message says for each node what to do. */
export function refuseUnable(unable: readonly UnableNode[]): void {
  if (unable.length === 0) return;
  const clauses = unable.map(({ sentence }) => sentence);
  const names = unable.map(({ name }) => name);
  const remedies = listedSentences(unable.map(remedyOf));
  throw new RefitError(
    'REFIT_CONTROL',
    `nothing was replaced, because not every node of the run can go back: ${listedSentences(clauses)}`,
    {
      hint: `${remedies}; or let the other nodes go back without ${listed(names)}: ${names.map((name) => `--skip-node ${name}`).join(' ')}`,
    },
  );
}

function remedyOf(node: UnableNode): string {
  const { name, why } = node;
  switch (why) {
    case 'lags':
      return `run this again when ${name} shows the version that runs; if somebody has put ${name} back by hand, remove its signal: kubectl annotate ${kindOf(node)} ${name} ${SIGNAL_DATA_ANNOTATION}-`;
    case 'untold':
      return `run this again when ${name} shows its version`;
    case 'unrecorded':
      return `put ${name} back by hand, to the version that you know it ran before`;
    case 'gone':
      return `run this again when ${name} is in the cluster again`;
  }
}

/**
 * Returns the ways back without the nodes that the user leaves out. Throws REFIT_USAGE for a name that is not among the
 * nodes that would go back.
 */
export function withoutNodes(ways: WaysBack, skipped: readonly string[]): WaysBack {
  const { moves, unable, left } = ways;
  const names = [...moves, ...unable].map(({ name }) => name);
  const unknown = skipped.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      `--skip-node ${unknown}: no node with this name would go back`,
      names.length === 0 ? {} : { hint: `write one of: ${listed(names)}` },
    );
  const isKept = ({ name }: { readonly name: string }): boolean => !skipped.includes(name);
  const reasons = [...new Set(skipped)].map((name) => {
    const { sentence = `${name} is left out, as --skip-node says` } =
      unable.find((each) => each.name === name) ?? {};
    return sentence;
  });
  return {
    moves: moves.filter(isKept),
    unable: unable.filter(isKept),
    left: [...reasons, ...left],
  };
}

/**
 * Throws REFIT_CONTROL, with the words of the leader, if the leader would refuse the Plan. So a finished Plan is never
 * replaced by a Plan that changes nothing.
 */
function refuseAsLeader(
  plan: Plan,
  policy: RolloutPolicy,
  { world, history }: Pick<WayBackParts, 'world' | 'history'>,
  now: number,
): void {
  const earlierRuns = earlierRunsIn(history);
  const decisions = { plan: PLAN_NAME, place: '', exists: true, approvals: [], accepted: [] };
  const snapshot = gatherPlanned(autopilot, plan, world, now, {
    decisions: answered({ ...decisions, earlierRuns, history }),
  });
  const refusals = refusalsOf({ snapshot, policy, now });
  if (refusals.length > 0) throw new RefitError('REFIT_CONTROL', refusalSentence(refusals));
}

/** Returns the kind of the object that has the signals of a node, in the form that kubectl accepts. */
export function kindOf({ role }: Pick<UnableNode, 'role'>): string {
  return (role === 'controller' ? controlNodes : nodes).kind.toLowerCase();
}

/**
 * Throws REFIT_USAGE, with a line for each problem, if the leader would refuse the Plan. An option of the user or a
 * recorded value may cause the problem.
 */
export function refuseInvalid(plan: Plan): void {
  const problems = problemsOf(plan).map(({ message }) => message);
  if (problems.length > 0)
    throw new RefitError('REFIT_USAGE', '', {
      problems,
      hint: 'correct --url and --sha256, such as --url linux-amd64=https://… --sha256 linux-amd64=…',
    });
}

/**
 * Returns the downloads that the user named with --url and --sha256. The options contain no version, so this function
 * chooses the version to which the nodes of the platform go back. If these nodes go back to several versions, it
 * chooses the only version without a recorded download. Throws REFIT_USAGE if this rule does not find exactly one
 * version.
 */
export function given(
  { url = [], sha256 = [] }: Pick<RollBackFlags, 'url' | 'sha256'>,
  { moves }: Pick<WaysBack, 'moves'>,
  recorded: readonly Recorded[],
) {
  const addresses = pairsOf('--url', url);
  const sums = pairsOf('--sha256', sha256);
  const named = [...addresses.keys()];
  const platforms = moves.flatMap(({ platform }) => platform ?? []);
  // A node whose platform is unknown may have any of the platforms that the user named.
  if (platforms.length === moves.length)
    refuseUnused('--url', named, platforms, 'no node that goes back has this platform');
  refuseUnused('--sha256', [...sums.keys()], named, 'it needs the --url of the same platform');
  return [...addresses].map(([platform, address]) => {
    const sum = sums.get(platform);
    return {
      version: versionFor(platform, moves, recorded),
      platform,
      url: address,
      ...(sum === undefined ? {} : { sha256: sum }),
    };
  });
}

type Recorded = Pick<NonNullable<NodeRolloutRun['downloads']>[number], 'version' | 'platform'>;

function versionFor(
  platform: string,
  moves: WaysBack['moves'],
  recorded: readonly Recorded[],
): string {
  const ofPlatform = moves.filter((move) => (move.platform ?? platform) === platform);
  const wanted = [...new Set(ofPlatform.map(({ to }) => to))];
  const isRecorded = (version: string): boolean =>
    recorded.some((each) => each.version === version && each.platform === platform);
  const missing = wanted.filter((version) => !isRecorded(version));
  const [version, ...others] = wanted.length === 1 ? wanted : missing;
  if (version !== undefined && others.length === 0) return version;
  throw new RefitError(
    'REFIT_USAGE',
    `--url ${platform}: nodes of this platform go back to ${listed(wanted, wanted.length)}, but one file has only one version`,
    {
      hint:
        missing.length === 0
          ? 'leave --url out, because the downloads are recorded; to use other downloads, write the Plan with -o yaml, change the downloads in it, and apply it'
          : 'write a Plan for each version yourself, with a policy that allows Downgrade',
    },
  );
}

/** Throws REFIT_USAGE for the first platform of the option that `known` does not contain. */
function refuseUnused(
  option: string,
  platforms: readonly string[],
  known: readonly string[],
  why: string,
): void {
  const unused = platforms.find((platform) => !known.includes(platform));
  if (unused === undefined) return;
  const names = [...new Set(known)];
  throw new RefitError(
    'REFIT_USAGE',
    `${option} ${unused}: ${why}`,
    names.length === 0 ? {} : { hint: `write one of: ${listed(names, names.length)}` },
  );
}

/** Returns the value for each platform. Throws REFIT_USAGE for a text without a platform, and for a platform that is named twice. */
function pairsOf(option: string, texts: readonly string[]): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const text of texts) {
    const at = text.indexOf('=');
    if (at <= 0)
      throw new RefitError(
        'REFIT_USAGE',
        `${option}: ${text} has no platform: write it as linux-amd64=…`,
      );
    const platform = text.slice(0, at);
    if (pairs.has(platform))
      throw new RefitError('REFIT_USAGE', `${option} ${platform} is given twice`, {
        hint: 'name each platform once',
      });
    pairs.set(platform, text.slice(at + 1));
  }
  return pairs;
}

/** Returns a clause about the order, with a comma before it; empty if only workers go back. */
function orderOf(moves: WaysBack['moves']): string {
  const roles = new Set(moves.map(({ role }) => role));
  if (!roles.has('controller')) return '';
  const first = roles.has('worker') ? ', workers first and then controllers' : '';
  return `${first}, one controller at a time`;
}

function shown(
  { moves, left }: WaysBack,
  run: NodeRolloutRun,
  history: readonly NodeRolloutRun[],
): string[] {
  const { rollsBack } = run;
  const rows = moves.map(({ name, role, from, to }) => [name, role, from, to]);
  return [
    `Run ${run.id} goes back${orderOf(moves)}:`,
    ...table(['NODE', 'ROLE', 'FROM', 'TO'], rows, Number.POSITIVE_INFINITY),
    ...left.map((sentence) => `not rolled back: ${sentence}`),
    ...(rollsBack === undefined
      ? []
      : [
          `Run ${run.id} itself rolled run ${runIdIn(rollsBack.run)} back. To go further back instead, pass --run ${rolledBackRunName(history, rollsBack.run)}`,
        ]),
  ];
}

/** Returns a sentence for each file of the Plan that the hosts keep. */
export function keptFilesIn({ spec }: Pick<Plan, 'spec'>): string[] {
  const lines = spec.commands.flatMap(({ k0supdate }) =>
    Object.entries(k0supdate?.platforms ?? {}).flatMap(([platform, { url, sha256 }]) =>
      isKeptFileUrl(url)
        ? [
            `${k0supdate?.version} for ${platform} is taken from the file that each host keeps, with the sha256 ${sha256}; nothing is downloaded`,
          ]
        : [],
    ),
  );
  return [...new Set(lines)];
}

/** Returns a clause for each snapshot of etcd that a controller reports, or that is recorded in a run in `history`. */
function snapshotsOf(world: World, history: readonly NodeRolloutRun[]): string[] {
  const reported = world.list(controlNodes).flatMap(({ metadata: { name, annotations } }) => {
    const signal = decodeSignal(annotations);
    const { etcdSnapshot } = (signal && decodeReport(annotations, signal.created)) ?? {};
    return etcdSnapshot === undefined ? [] : [{ node: name, ...etcdSnapshot }];
  });
  const recorded = history.flatMap(({ snapshots = [] }) => snapshots);
  const taken = [...reported, ...recorded].filter(({ path }) => path !== undefined);
  const byFile = new Map(taken.map((each) => [`${each.node} ${each.path}`, each]));
  return [...byFile.values()].map((each) => printable(snapshotSentence(each.node, each)));
}
