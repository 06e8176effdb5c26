/**
 * The contract of gates and verifiers, and the input that they get. A gate answers pass, wait or stop, with a reason, and reads
 * nothing but its input.
 */
import type { HookRun } from '../../hooks/rules.ts';
import { type Node, readyCondition } from '../../kube/resources.ts';
import { virtualBy } from '../../kube/virtual-nodes.ts';
import { isTaken } from '../../signal/at-work.ts';
import { onceForEach } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { isSameVersion } from '../../versions/release-parts.ts';
import { NEVER } from '../model/asked.ts';
import type { Probe } from '../model/decision.ts';
import { runOf } from '../model/decisions-of-people.ts';
import type { TargetFacts, TargetReport } from '../model/facts.ts';
import {
  because,
  type DetailsFor,
  type PlainCode,
  type Reason,
  type ReasonCode,
} from '../model/reasons.ts';
import { type Stage, stagesBefore, type Target, targetsIn } from '../model/rollout.ts';
import type { Snapshot, TargetLookup } from '../model/snapshot.ts';
import type { NodeLimit, RolloutPolicy } from '../policy/rollout-policy.ts';
import { type CheckedTarget, targetsToCheck } from './checked-targets.ts';
import { unfitHosts } from './unfit-hosts.ts';

export interface GateInput
  extends Omit<TargetContext, 'snapshot'>,
    Pick<
      Snapshot,
      'cluster' | 'abilities' | 'outside' | 'plan' | 'term' | 'pace' | 'rollout' | 'targets'
    > {
  readonly facts: TargetFacts;
  readonly earlier: readonly Stage[];
  /** The name of the run of the plan. Approvals and acceptances by people contain the name of their run. */
  readonly run: string;
  /** True once a target of the run was signalled or is about to be; false if the policy has no hook before the plan. */
  readonly isBegun: boolean;
  /** How many targets of the stage may still start, including the evaluated target. */
  readonly room: number;
  readonly census: NodeCensus | undefined;
  /** The targets that are asked whether they can download what the plan names; empty once a target has started. */
  readonly checked: readonly CheckedTarget[];
  /**
   * Maps each problem of a host to the names of the targets whose hosts have this problem and so cannot run the
   * version; empty after the first target has started.
   */
  readonly unfit: ReadonlyMap<string, ReadonlySet<string>>;
  /**
   * The expected duration of the target in milliseconds. It is computed from the targets of this rollout, or else from
   * the last upgrade of this target, or else of its stage. Undefined if no such duration is known.
   */
  readonly expectedMs: number | undefined;
}

export type Verdict =
  | { readonly kind: 'pass' }
  | Waiting
  /**
   * The target cannot start, and waiting does not help. If `ofPlan` is set, the plan is wrong, not the target: the
   * rollout ends when no target is in progress any more.
   */
  | { readonly kind: 'stop'; readonly reason: Reason; readonly ofPlan?: true };

/** A wait. The gate is asked again when something changes, or after `recheckMs` if no watch shows the change. */
export interface Waiting {
  readonly kind: 'wait';
  readonly reason: Reason;
  /** A clause that follows "when". It says what ends the wait, and what people can do about it. */
  readonly ends: string;
  readonly recheckMs?: number | undefined;
  /** True if only this target waits, although a wait of this gate usually blocks the whole rollout (`ofRollout`). */
  readonly isOfThisTarget?: true;
  /** True if an intended target stays recorded as intended while it waits, and so keeps its claim on the Node. */
  readonly keepsIntent?: true;
  /** True for a wait that ends by itself within seconds. No Event or condition reports such a wait. */
  readonly isPassing?: true;
  /** True if the target starts as soon as the wait ends, so no later target takes its slot meanwhile. */
  readonly holdsSlot?: true;
  /** The time since which the reason holds, in RFC 3339; undefined if it is unknown. */
  readonly since?: string | undefined;
  /** The time at which the wait ends by itself, in RFC 3339; undefined if it is unknown. */
  readonly until?: string | undefined;
  readonly probe?: Probe | undefined;
  /** The number of the wave that needs approval; the first wave is 1. */
  readonly unapproved?: number | undefined;
  /** The names of Nodes whose cordon, which no plan needs, makes the target wait. */
  readonly uncordon?: readonly string[] | undefined;
  /** The names of the first targets that must be done before this target. */
  readonly after?: readonly string[] | undefined;
  /** The run of a hook that must succeed before the wait ends. The leader carries it out. */
  readonly hookRun?: HookRun | undefined;
}

export interface Gate {
  readonly name: string;
  /**
   * True if a wait of this gate blocks every target that could start now, and so the whole rollout. Then it is enough
   * to evaluate the gate for one target. The answer may depend on the stage, because only the active stage starts
   * targets.
   */
  readonly ofRollout?: boolean;
  /**
   * True if a wait of this gate concerns one target alone and says nothing about the health of that target, so that other controllers may
   * start meanwhile.
   */
  readonly isOfTargetAlone?: boolean;
  /** True if the gate needs a probe for each target. The scheduler then tries only some targets at a time. */
  readonly probesEachTarget?: boolean;
  /**
   * Returns true if the gate may stop with `ofPlan`. It must then give the same answer for all targets of a stage that run the same
   * version.
   */
  mayRefusePlan?(snapshot: Snapshot): boolean;
  evaluate(input: GateInput): Verdict;
}

export const PASS: Verdict = { kind: 'pass' };

/**
 * Returns a verdict that waits. `message` is one sentence, and `ends` a clause that follows "when".
 */
export function wait(
  code: PlainCode,
  message: string,
  ends: string,
  more: Partial<Waiting> = {},
): Waiting {
  return waitFor(because(code, message), ends, more);
}

/** Returns a verdict that makes the target wait for this reason. */
export function waitFor(reason: Reason, ends: string, more: Partial<Waiting> = {}): Waiting {
  return { ...more, kind: 'wait', reason, ends };
}

/**
 * Returns a verdict that stops the target, because waiting cannot help. `message` is one sentence.
 */
export function stop<Code extends ReasonCode>(
  code: Code,
  message: string,
  ...details: DetailsFor<Code>
): Verdict {
  return { kind: 'stop', reason: because(code, message, ...details) };
}

/** The facts of a target that does not exist. */
export const ABSENT: TargetFacts = {
  exists: false,
  meant: undefined,
  platform: undefined,
  labels: undefined,
  virtual: undefined,
  ready: undefined,
  readySince: undefined,
  version: undefined,
  earlierVersion: undefined,
  created: undefined,
  isThere: false,
  signalledBy: undefined,
  asked: undefined,
  versionGap: undefined,
  isBehind: false,
  node: undefined,
  claimNeed: undefined,
  isNodeOutdated: false,
  drainDelegation: NEVER,
  drainPreview: NEVER,
  blockedMs: undefined,
  drain: undefined,
  watchedMs: undefined,
  followedMs: undefined,
  agent: undefined,
  subject: undefined,
  unfit: undefined,
  prefetch: undefined,
  downloads: undefined,
  requiredDownload: undefined,
  hold: undefined,
  refusal: undefined,
  announcementRefusal: undefined,
  observation: { kind: 'none' },
};

/** A snapshot, as far as it finds the facts of targets. */
export interface WithFacts {
  readonly targets: Pick<TargetLookup, 'get'>;
}

/** Returns the facts of the target. If the snapshot has none, returns the facts of a target that does not exist. */
export function factsOf({ targets }: WithFacts, target: Target): TargetFacts {
  return targets.get(target.key) ?? ABSENT;
}

/**
 * Returns the version of the last signal of a target, or the version that the plan asks for now if the target has no
 * such signal. Use it for everything that was done on a target: `stage.version` is what the plan asks for now, and people
 * may have edited the plan since the signal.
 */
export function versionAsked(
  { asked }: Pick<TargetFacts, 'asked'>,
  { version }: Pick<Stage, 'version'>,
): string {
  return asked ?? version;
}

/** Returns what the target itself has reported about its last attempt; undefined if it has reported nothing. */
export function reportOf({
  observation,
}: Pick<TargetFacts, 'observation'>): TargetReport | undefined {
  return observation.kind === 'none' ? undefined : observation.report;
}

/** Returns the version that the target ran before its last attempt; undefined if it is not known. */
export function versionBefore(
  facts: Pick<TargetFacts, 'observation' | 'earlierVersion'>,
): string | undefined {
  return reportOf(facts)?.from ?? facts.earlierVersion;
}

/**
 * Returns true if the target ran the version of its signal already before its last attempt, so that this attempt has
 * upgraded nothing; false if the version before the attempt is not known.
 */
export function hadVersionBefore(facts: TargetFacts, stage: Stage): boolean {
  const from = versionBefore(facts);
  if (from === undefined || stage.keepsVersion === true) return false;
  const asked = versionAsked(facts, stage);
  const kubernetes = asked === stage.version ? stage.kubernetesVersion : undefined;
  return (
    isSameVersion(from, asked) || (kubernetes !== undefined && isSameVersion(from, kubernetes))
  );
}

/**
 * Returns the labels of the target's object, without gathering its other facts, because the order and the waves read the labels of every
 * target.
 */
export function labelsOf(
  { targets }: Pick<Snapshot, 'targets'>,
  target: Target,
): Readonly<Record<string, string>> {
  return targets.labelsOf(target.key) ?? {};
}

export interface DecisionContext {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  readonly now: number;
}

export interface TargetContext extends DecisionContext {
  readonly stage: Stage;
  readonly target: Target;
}

/**
 * Returns the facts that the gates read about one target. `room` is the number of targets that may still start,
 * including this target. `known` is a census that replaces the present census.
 */
export function gateInput(context: TargetContext, room: number, known?: NodeCensus): GateInput {
  const { snapshot, stage, target, policy, now } = context;
  const census = known ?? censusFor(snapshot, policy);
  const { rollout } = snapshot;
  const facts = factsOf(snapshot, target);
  const earlier = stagesBefore(rollout, stage);
  const checked = targetsToCheck(snapshot)(policy);
  const unfit = unfitHosts(snapshot)(policy);
  // A target that takes longer than its deadline fails, so no target is expected to take longer.
  const took = mostMsOf(snapshot, stage, target);
  const expectedMs = took && Math.min(took, policy.targetDeadlineMs);
  return {
    ...snapshot,
    stage,
    target,
    policy,
    now,
    facts,
    run: runOf(rollout),
    earlier,
    isBegun: (hasHookBeforePlan(policy) || requiresReady(policy)) && isRunBegun(snapshot),
    room,
    census,
    checked,
    unfit,
    expectedMs,
  };
}

/** Returns the duration within which such a target is usually done; undefined if no duration is known. */
function mostMsOf({ pace, targets }: Snapshot, { id }: Stage, { key }: Target): number | undefined {
  switch (pace.kind) {
    case 'measured':
      return pace.mostMs;
    case 'earlier':
      return targets.earlierMsOf(key) ?? ownMember(pace.mostMsByStage, id);
    case 'unknown':
      return targets.earlierMsOf(key);
  }
}

/** Returns true if the policy checks the cluster before the first node of a run. */
function requiresReady({ health }: RolloutPolicy): boolean {
  return health?.checks.some(({ kind }) => kind === 'readiness') === true;
}

function hasHookBeforePlan({ hooks = [] }: RolloutPolicy): boolean {
  return hooks.some(({ when }) => when === 'beforePlan');
}

/**
 * Returns true if a target was signalled for this run, or will be signalled next. A target that was refused, or that
 * already had the version, was never signalled.
 */
export const isRunBegun = onceForEach(
  ({ rollout, targets }: Snapshot) =>
    targetsIn(rollout, 'intended').length > 0 ||
    targetsIn(rollout, 'done', 'failed', 'skipped').some(
      (target) => factsOf({ targets }, target).observation.kind !== 'none',
    ),
);

/**
 * Returns the census of the Nodes that count under the policy; undefined if the policy has no
 * limit.
 */
export function censusFor(
  snapshot: Snapshot,
  { maxUnavailable, perDomain, countsVirtual = false }: RolloutPolicy,
): NodeCensus | undefined {
  if (maxUnavailable === undefined && perDomain === undefined) return undefined;
  return countsVirtual ? censusWithVirtual(snapshot) : censusOfHosts(snapshot);
}

/**
 * Returns the census for an intended target; undefined if the policy has no limit. Later intended targets that are not
 * signalled yet do not count as busy: they wait for this target, so this target must not wait for them.
 */
export function censusOfIntent({ snapshot, stage: { targets }, target, policy }: TargetContext) {
  const census = censusFor(snapshot, policy);
  if (!census) return undefined;
  const names = targets.slice(targets.indexOf(target) + 1).flatMap((each) => {
    if (each.state !== 'intended') return [];
    const facts = factsOf(snapshot, each);
    const { observation, node: { claim = snapshot.plan.claim } = {} } = facts;
    const isUnsent = observation.kind === 'none' && observation.begun !== true;
    return isUnsent && claim === snapshot.plan.claim ? nodeNameOf(each, facts) : [];
  });
  return { ...census, busy: census.busy.difference(new Set(names)).union(census.unavailable) };
}

/**
 * Returns the name of the target's Node if the Node is known, or else the name of the target. The Node of a controller may have
 * another name.
 */
export function nodeNameOf(target: Target, { node }: TargetFacts): string {
  return node?.name ?? target.name;
}

function censusIn(snapshot: Snapshot, countsVirtual: boolean): NodeCensus | undefined {
  const intended = targetsIn(snapshot.rollout, 'intended');
  const inFlight = intended.map((target) => nodeNameOf(target, factsOf(snapshot, target)));
  return (
    snapshot.cluster.fleet &&
    censusOf(snapshot.cluster.fleet, inFlight, snapshot.plan.claim, countsVirtual)
  );
}

/** Each census is computed once per snapshot, because it reads every Node and each target in progress needs it. */
const censusOfHosts = onceForEach((snapshot: Snapshot) => censusIn(snapshot, false));
const censusWithVirtual = onceForEach((snapshot: Snapshot) => censusIn(snapshot, true));

export interface NodeCensus {
  readonly all: ReadonlySet<string>;
  /** The names of the Nodes that are unschedulable or not Ready, for any reason. */
  readonly unavailable: ReadonlySet<string>;
  /** The names of the unavailable Nodes that are Ready and on which no plan works. They only need `kubectl uncordon`. */
  readonly cordoned: ReadonlySet<string>;
  /**
   * The names of the unavailable Nodes, and of the Nodes that will be unavailable because targets of this plan or of
   * another plan are in progress on these Nodes.
   */
  readonly busy: ReadonlySet<string>;
}

/**
 * Returns the Nodes that count, the unavailable Nodes and the busy Nodes. `inFlight` contains the names of targets in
 * flight; names without a Node do not count. `claim` is the claim of the plan that asks. Virtual Nodes count only if
 * `countsVirtual` is true, or while a plan works on them.
 */
export function censusOf(
  fleet: readonly Node[],
  inFlight: readonly string[],
  claim?: string,
  countsVirtual = false,
): NodeCensus {
  const moving = new Set(inFlight);
  const all = new Set<string>();
  const unavailable = new Set<string>();
  const cordoned = new Set<string>();
  const busy = new Set<string>();
  for (const node of fleet) {
    const { name } = node.metadata;
    const isAtWork = moving.has(name) || isTaken(node, claim);
    if (!isAtWork && !countsVirtual && virtualBy(node) !== undefined) continue;
    all.add(name);
    const isReady = readyCondition(node)?.status === 'True';
    const isAway = !isReady || node.spec?.unschedulable === true;
    if (isAway && isReady && !isAtWork) cordoned.add(name);
    if (isAway) unavailable.add(name);
    if (isAway || isAtWork) busy.add(name);
  }
  return { all, unavailable, cordoned, busy };
}

/**
 * Returns the wait for Nodes that are available again. Of the Nodes that count, the wait names those that people can
 * uncordon. `limit` is the field of the policy that people can raise.
 */
export function waitForNodes(
  code: PlainCode,
  message: string,
  { cordoned }: NodeCensus,
  { counted, limit }: { readonly counted: readonly string[]; readonly limit: string },
): Waiting {
  const uncordon = counted.filter((name) => cordoned.has(name));
  const again =
    uncordon.length === 0
      ? 'one of those nodes is available again'
      : `one of those nodes is available again (only cordoned: kubectl uncordon ${uncordon.slice(0, MOST_UNCORDONED).join(' ')})`;
  return wait(code, message, `${again}, or ${limit} of the UpgradePolicy is raised`, {
    ...(uncordon.length > 0 && { uncordon: uncordon.slice(0, MOST_UNCORDONED) }),
  });
}

/** The most Nodes that a wait names for `kubectl uncordon`. */
const MOST_UNCORDONED = 5;

/**
 * Returns the number of nodes that may be unavailable under the limit. `nodes` is the number of all nodes. A percentage
 * allows at least one node, because otherwise no target could ever start.
 */
export function nodesAllowedAway(limit: NodeLimit, nodes: number): number {
  return 'nodes' in limit ? limit.nodes : Math.max(1, Math.floor((nodes * limit.percent) / 100));
}
