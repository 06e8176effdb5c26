/**
 * Asks the API server the questions that a decision depends on and that no watch can answer. Gets only the answers that
 * the rights of the user allow.
 */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { ToolName } from '../../coordination/tool.ts';
import type { BudgetPods } from '../../drain/budget-pods.ts';
import { isDrained } from '../../drain/drain-node.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { type Asked, answered, UNASKED, unanswered } from '../../engine/model/asked.ts';
import type { Probe } from '../../engine/model/decision.ts';
import type { DecisionsOfPeople } from '../../engine/model/decisions-of-people.ts';
import { because } from '../../engine/model/reasons.ts';
import type { Rollout, Source, Target } from '../../engine/model/rollout.ts';
import { isRefusedIn } from '../../engine/reasons/refused-write.ts';
import { blockedBy } from '../../engine/report/conditions.ts';
import type { ShownSilencing } from '../../engine/report/shown-silencing.ts';
import type { Known } from '../../engine/snapshot/gather.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { componentsFinding, doubtOf, leaderFinding } from './control-plane-finding.ts';
import type { Sources } from './inspection-sources.ts';
import type { Loaded } from './load.ts';

/**
 * A question about the progress of the leader's drain of a node. Only the leader has the state of the drain in its
 * memory, so this command looks at the pods of the node.
 */
export interface DrainProbe {
  readonly kind: 'drain';
  readonly node: string;
  /** The start of the drain in milliseconds since the Unix epoch. */
  readonly since: number;
}

export type Question = Probe | DrainProbe;

type Subject = Pick<Loaded, 'dialect' | 'world'> & {
  readonly plan: KubeObject;
  /** What the NodeRollout of the plan must be about. For kubeadm, it is a run, and not the object of the plan. */
  readonly source: Source;
  readonly options: DrainOptions;
  /** True if the process that carries out the plan runs on this machine, so it sees what this command sees. */
  readonly isLeaderHere: boolean;
};

/**
 * The maximum number of questions of one kind that are asked. Each question is a request, and there may be one question
 * for each of hundreds of nodes.
 */
const MOST_OF_A_KIND = 20;
const LEFT_OBJECTS = 'whether the cluster still has objects that the new version does not serve';
const UNCOUNTED =
  'the order of the nodes: `drain.startWith` needs the number of pods that PodDisruptionBudgets cover';
const CLEAR: DrainPreview = { evictable: 0, obstacles: [], refused: [] };

/**
 * Asks one question. If the question fails, resolves with `neutral`. The sentence about the failed check then contains
 * `what`, which names the question.
 */
type Asking = <T>(what: string, question: () => Promise<T>, neutral: T) => Promise<T>;

/** Sends no request and returns the neutral answer. */
const neutrally: Asking = async (_what, _question, neutral) => await Promise.resolve(neutral);

interface KnownAnswers extends Known {
  readonly drainOf: (node: string) => DrainState | undefined;
}

export interface InspectionAnswers {
  /** The answers that are known so far. */
  readonly known: KnownAnswers;
  /** One sentence for each kind of question that could not be answered. The decision assumes that these checks found no problem. */
  readonly unseen: ReadonlySet<string>;
  /** Asks these questions and stores the answers. Does not reject if a request is denied. */
  readonly add: (questions: readonly Question[]) => Promise<void>;
  /** Asks for the results of the health checks with these names. */
  readonly addHealth: (names: readonly string[]) => Promise<void>;
  /** Asks for the states of the hooks of the policy. */
  readonly addHooks: () => Promise<void>;
  /** Asks why targets of the run failed. */
  readonly addFailures: (run: string) => Promise<void>;
  /** Counts the pods that PodDisruptionBudgets cover. */
  readonly addBudgetPods: () => Promise<void>;
  /** Asks whether alerts about the nodes in progress are silenced. Resolves with undefined if that is not known. */
  readonly silencing: () => Promise<ShownSilencing | undefined>;
  /** Asks for the recorded runs of the plan. Resolves with undefined if they are not known, because they are not needed for a decision. */
  readonly runs: () => Promise<readonly NodeRolloutRun[] | undefined>;
  /** Looks at the locks of these tools. */
  readonly addLocks: (coordinate: readonly ToolName[]) => Promise<void>;
}

export function inspectionAnswers(
  sources: Sources,
  { dialect, plan, source, world, options, isLeaderHere }: Subject,
): InspectionAnswers {
  const delegations = new Map<string, Asked<boolean>>();
  const drains = new Map<string, DrainState>();
  const unseen = new Set<string>();
  const known = nothingKnown({ dialect, plan }, delegations, drains);
  const ask = askingInto(unseen);
  const answer = async (question: Question, isAsked: boolean): Promise<void> => {
    const asking = isAsked ? ask : neutrally;
    switch (question.kind) {
      case 'control-plane': {
        known.controlPlane ??=
          leaderFinding(plan) ??
          (await controlPlaneFromHere(sources, { dialect, world, isLeaderHere }, asking, unseen));
        return;
      }
      case 'preconditions': {
        const unmet = async () => await sources.preconditions(dialect, plan);
        known.preconditions = answered(await asking(LEFT_OBJECTS, unmet, []));
        return;
      }
      case 'decisions':
        known.decisions = await decisionsFrom(sources.decisions(dialect, plan), unseen);
        return;
      case 'drain-preview': {
        const preview = async () => await sources.drainPreview(question.node, options);
        known.drainPreviews.set(
          question.node,
          answered(await asking('whether nodes can be drained', preview, CLEAR)),
        );
        return;
      }
      case 'drain-delegation': {
        const { stage, target } = question;
        const delegation = async () => await sources.drainDelegation(dialect, stage, target, world);
        delegations.set(target.key, answered(await asking('who drains a node', delegation, true)));
        return;
      }
      case 'drain': {
        const { node, since } = question;
        const drain = async () => await sources.drain(node, options);
        drains.set(node, drainStateOf(await asking('drain progress', drain, undefined), since));
      }
    }
  };
  const add = async (questions: readonly Question[]) => await answerAll(questions, answer);
  const addHealth = async (names: readonly string[]): Promise<void> => {
    known.health = await healthOf(names, () => sources.health(dialect, plan, source), unseen);
  };
  const addLocks = async (coordinate: readonly ToolName[]): Promise<void> => {
    if (coordinate.length === 0) return;
    const seen = await sources.locks(dialect, coordinate);
    known.locks = seen.known;
    for (const each of seen.unseen) unseen.add(each);
  };
  const addBudgetPods = async (): Promise<void> => {
    known.budgetPods = answered(await budgetPodsFrom(sources, unseen));
  };
  const published = publishedAnswers(sources, { dialect, plan, source }, known, ask);
  return { known, unseen, add, addHealth, addLocks, addBudgetPods, ...published };
}

/** Returns the questions about what the leader publishes in the NodeRollout of the plan. */
function publishedAnswers(
  sources: Sources,
  { dialect, plan, source }: Pick<Subject, 'dialect' | 'plan' | 'source'>,
  known: Pick<ReturnType<typeof nothingKnown>, 'hooks' | 'failures'>,
  ask: Asking,
): Pick<InspectionAnswers, 'addHooks' | 'addFailures' | 'runs' | 'silencing'> {
  return {
    addHooks: async () => {
      const question = async () => await sources.hooks(dialect, plan, source);
      known.hooks = await ask('the results of hooks', question, undefined);
    },
    addFailures: async (run) => {
      const question = async () => await sources.failures(dialect, plan, run);
      known.failures = await ask('why nodes failed', question, undefined);
    },
    runs: async () => await sources.runs(dialect, plan).catch(() => undefined),
    silencing: async () => {
      const question = async () => await sources.silencing(dialect, plan, source);
      return await ask('whether alerts are silenced', question, undefined);
    },
  };
}

/**
 * Returns the answers before any question was asked. The answers about delegations and drains are read from the two
 * maps, which later questions fill.
 */
function nothingKnown(
  { dialect, plan }: Pick<Subject, 'dialect' | 'plan'>,
  delegations: ReadonlyMap<string, Asked<boolean>>,
  drains: ReadonlyMap<string, DrainState>,
) {
  return {
    controlPlane: undefined as Known['controlPlane'],
    preconditions: undefined as Known['preconditions'],
    decisions: UNASKED as Known['decisions'],
    components: componentsFinding(plan),
    health: undefined as Known['health'],
    failures: undefined as Known['failures'],
    locks: undefined as Known['locks'],
    hooks: undefined as Known['hooks'],
    budgetPods: undefined as Known['budgetPods'],
    drainPreviews: new Map<string, Asked<DrainPreview>>(),
    drainDelegationOf: ({ key }: Target) => delegations.get(key) ?? UNASKED,
    drainOf: (node: string) => drains.get(node),
    refusalOf: (_rollout: Rollout, { name }: Target) => refusalOn(dialect, plan, name),
  } satisfies Known;
}

/**
 * Calls `answer` for all questions at the same time. `isAsked` is false for each question that exceeds the limit for
 * its kind.
 */
async function answerAll(
  questions: readonly Question[],
  answer: (question: Question, isAsked: boolean) => Promise<void>,
): Promise<void> {
  const kinds = [...Map.groupBy(questions, ({ kind }) => kind).values()];
  const answers = kinds.flatMap((alike) =>
    alike.map(async (each, at) => await answer(each, at < MOST_OF_A_KIND)),
  );
  await Promise.all(answers);
}

/** Resolves with the counted pods. If they could not be counted, adds the reason to `unseen`. */
async function budgetPodsFrom(sources: Sources, unseen: Set<string>): Promise<BudgetPods> {
  const found = await sources.budgetPods();
  if (found.problem !== undefined) unseen.add(`${UNCOUNTED}: ${found.problem}`);
  return found;
}

/**
 * Asks the API servers from this machine. If some are not ready, their state counts as unknown: perhaps only this machine cannot reach
 * them.
 */
async function controlPlaneFromHere(
  sources: Sources,
  { dialect, world, isLeaderHere }: Pick<Subject, 'dialect' | 'world' | 'isLeaderHere'>,
  asking: Asking,
  unseen: Set<string>,
): Promise<Known['controlPlane']> {
  const question = async () => await sources.controlPlane(dialect.endpoints(world));
  const health = await asking('whether the API servers are ready', question, []);
  const doubt = isLeaderHere ? undefined : doubtOf(health);
  if (doubt === undefined) return answered(health);
  unseen.add(doubt);
  return unanswered({ reason: because('ControlPlaneUnknown', doubt), recheckMs: 0 });
}

/**
 * Resolves with the decisions of people. If they cannot be read, no wave counts as approved. The leader does the same.
 */
async function decisionsFrom(
  asked: ReturnType<Sources['decisions']>,
  unseen: Set<string>,
): Promise<Known['decisions']> {
  return await asked.then(answered<DecisionsOfPeople>, (error: unknown) => {
    const what = `what people approved or accepted: ${messageOf(error)}`;
    unseen.add(what);
    return unanswered({ reason: because('CannotDecide', `could not check ${what}`), recheckMs: 0 });
  });
}

/** Returns a function that asks a question. If the question fails, the function adds a sentence to `unseen`. */
function askingInto(unseen: Set<string>): Asking {
  return async (what, question, neutral) =>
    await question().catch((error: unknown) => {
      unseen.add(`${what}: ${messageOf(error)}`);
      return neutral;
    });
}

/**
 * Resolves with the results of the health checks with these names. If there are no results, adds the reason to
 * `unseen`.
 */
async function healthOf(
  names: readonly string[],
  question: () => Promise<Known['health']>,
  unseen: Set<string>,
): Promise<Known['health']> {
  if (names.length === 0) return undefined;
  const what = `health checks ${listed(names)}`;
  try {
    const found = await question();
    if (found === undefined)
      unseen.add(`${what}: the leader has shown no results in a NodeRollout`);
    return found;
  } catch (error) {
    unseen.add(`${what}: ${messageOf(error)}`);
    return undefined;
  }
}

/**
 * If the API server refuses the leader's signal to the target, returns the message that the leader has recorded in the
 * plan; undefined if the plan has no such message.
 */
function refusalOn(dialect: Dialect, plan: KubeObject, target: string) {
  const words = dialect.reporting?.stalls?.of(plan) ?? blockedBy(plan, 'TargetRefused') ?? '';
  return isRefusedIn(words, target)
    ? { reason: because('TargetRefused', words), recheckMs: 0 }
    : undefined;
}

/**
 * Returns the state of the leader's drain. `progress` describes the pods that are still on the node. If `progress` is
 * undefined, the drain counts as finished.
 */
function drainStateOf(
  progress: Awaited<ReturnType<Sources['drain']>> | undefined,
  since: number,
): DrainState {
  return progress === undefined || isDrained(progress)
    ? { kind: 'drained', since }
    : { kind: 'draining', since, ...progress };
}
