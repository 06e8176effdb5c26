/** Owns the look at all plans at one moment, through the very decision that the controller takes. */
import { decide } from '../../engine/decide/decide.ts';
import { explainToPeople } from '../../engine/decide/explain-skipped.ts';
import type { Dialect, World } from '../../engine/dialect.ts';
import { factsOf } from '../../engine/gates/context.ts';
import type { Snapshot } from '../../engine/model/observed.ts';
import { isFinal } from '../../engine/model/recorded.ts';
import { gather } from '../../engine/observe/gather.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import { type DrainProbe, InspectionAnswers, type Question } from './answers.ts';
import type { Loaded } from './load.ts';
import { type Policies, policyOf } from './policies.ts';
import type { Sources } from './sources.ts';
import { type PlanView, viewOf } from './view.ts';

/** Whom to ask for what the objects do not tell, and what plans are held to. */
export interface Looking {
  readonly sources: Sources;
  readonly policies: Policies;
}

/** One plan at one moment. */
export interface Inspection {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly world: World;
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** What could not be seen, one sentence each. */
  readonly unseen: readonly string[];
}

/** Nothing is written. */
export async function observe(dialect: Dialect, loaded: Loaded, looking: Looking, now: number): Promise<PlanView[]> {
  const views = loaded
    .plans()
    .map(async (plan) => viewAt(await inspect(dialect, plan, loaded.world, looking, now), now));
  return (await Promise.all(views)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Gates asked one after the other, each more than a plan has: so that a fault cannot spin. */
const MAX_ROUNDS = 10;

/** As the leader does: what a decision hangs on is asked for, until nothing is left to ask. */
export async function inspect(
  dialect: Dialect,
  plan: KubeObject,
  world: World,
  { sources, policies }: Looking,
  now: number,
): Promise<Inspection> {
  const policy = policyOf(policies, dialect, plan);
  const answers = new InspectionAnswers(sources, { dialect, plan, world, options: policy.drain.options });
  const look = (): Snapshot => sinceCreation(gather(dialect, plan, world, now, answers.known));
  let snapshot = look();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const questions = questionsOf(snapshot, policy, answers, now);
    if (questions.length === 0) break;
    await answers.add(questions);
    snapshot = look();
  }
  const { unseen } = policies;
  return {
    dialect,
    plan,
    world,
    snapshot,
    policy,
    unseen: [...(unseen === undefined ? [] : [unseen]), ...answers.unseen],
  };
}

/** Explains what is recorded, and not what will be: without a controller that never comes. */
export function viewAt({ dialect, snapshot, policy, unseen }: Inspection, now: number): PlanView {
  const upcoming = decide(snapshot, policy, now).record ?? snapshot.rollout;
  const explanation = explainToPeople(snapshot, policy, now);
  return viewOf(dialect, { snapshot, explanation, upcoming, policy, unseen });
}

/** Of what is recorded, and of what would be recorded next: a plan that nobody has taken up yet has gates, too. */
function questionsOf(snapshot: Snapshot, policy: RolloutPolicy, answers: InspectionAnswers, now: number): Question[] {
  const decisions = [explainToPeople, decide].map((each) => each(snapshot, policy, now));
  const probes = decisions.flatMap((each) => each.probes);
  const drains = drainsIn(snapshot, policy, now).filter(({ node }) => !answers.knowsDrainOf(node));
  const asked = new Map([...probes, ...drains].map((question) => [keyOf(question), question]));
  return [...asked.values()];
}

function keyOf(question: Question): string {
  if (question.kind === 'drain-delegation') return `drain delegation ${question.target.key}`;
  return 'node' in question ? `${question.kind} ${question.node}` : question.kind;
}

/**
 * What the leader drains at this moment. When it began it alone knows: the word of the node is close to it, but never so
 * long ago that the drain would have failed, since nobody but the leader may say that.
 */
function drainsIn({ rollout, facts }: Snapshot, policy: RolloutPolicy, now: number): DrainProbe[] {
  if (isFinal(rollout) || !policy.drain.enabled) return [];
  const earliest = now - policy.stepDeadlines.drain + 1000;
  return rollout.stages.flatMap(({ targets }) =>
    targets.flatMap((target): DrainProbe[] => {
      const { observation, drainDelegation, node } = factsOf({ facts }, target);
      const isDrained = observation.kind === 'working' && observation.waitsFor === 'drain' && drainDelegation === true;
      if (!isDrained || !node?.unschedulable || target.state !== 'intended') return [];
      const began = Date.parse(observation.since);
      return [{ kind: 'drain', node: node.name, since: Math.max(Number.isNaN(began) ? now : began, earliest) }];
    }),
  );
}

/** The targets of a plan without status wait since it was created, not since somebody looked. */
function sinceCreation(snapshot: Snapshot): Snapshot {
  const { rollout } = snapshot;
  if (rollout.phase !== 'new') return snapshot;
  const since = rollout.source.created;
  const stages = rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({ ...target, since })),
  }));
  return { ...snapshot, rollout: { ...rollout, stages } };
}
