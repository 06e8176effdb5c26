/** Planted mistakes of leaders of Rancher's Plans, each with the invariant that it breaks. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { Instruction, Signal } from '../../../src/engine/contract/signal.ts';
import type { Observation } from '../../../src/engine/model/facts.ts';
import type { Stage, Target } from '../../../src/engine/model/rollout.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { EVERY_RUN_ENDS } from '../explorer.ts';
import { type CattleLeader, dialectFor, leaderWith, realCattleLeader } from './cattle-leader.ts';
import type { CattleConfiguration } from './cattle-objects.ts';
import { configureCattle } from './configurations.ts';

export interface CattleMistake {
  readonly name: string;
  readonly configuration: CattleConfiguration;
  readonly leader: CattleLeader;
  readonly breaks: string;
}

type CattleDialect = Dialect<CattlePlan>;

function changing(change: (dialect: CattleDialect, now: number) => Partial<CattleDialect>) {
  return leaderWith(({ configuration, now }) => {
    const dialect = dialectFor(configuration);
    return { ...dialect, ...change(dialect, now) };
  });
}

function changingSignal(change: (signal: Signal<CattlePlan>) => Partial<Signal<CattlePlan>>) {
  return changing(({ signal }) => ({ signal: { ...signal, ...change(signal) } }));
}

const reading = (change: (seen: Observation) => Observation): CattleLeader =>
  changingSignal((signal) => ({ read: (...given) => change(signal.read(...given)) }));

/** Changes the only stage of the Plan. */
const resolving = (change: (stage: Stage, now: number) => Partial<Stage>): CattleLeader =>
  changing((dialect, now) => ({
    resolve: (...given) => {
      const rollout = dialect.resolve(...given);
      const stages = rollout.stages.map((stage) => ({ ...stage, ...change(stage, now) }));
      return { ...rollout, stages };
    },
  }));

const ruling = (change: (policy: RolloutPolicy) => Partial<RolloutPolicy>): CattleLeader =>
  changing(({ planRules }) => ({
    planRules: {
      apply: (plan, policy, world) => {
        const ruled = planRules?.apply(plan, policy, world) ?? policy;
        return { ...ruled, ...change(ruled) };
      },
    },
  }));

/** Changes the last write to a Node, after its target is done. */
const finishing = (change: (node: Node, before: Node | undefined) => Node): CattleLeader =>
  changing(({ signal, drainDelegation }) => ({
    signal: {
      ...signal,
      finish: (world, rollout, stage, target, plan) => {
        const write = signal.finish?.(world, rollout, stage, target, plan);
        const before = drainDelegation?.nodeOf(stage, target, world);
        return write?.kind === 'replace' ? replaced(write, change(write.object, before)) : write;
      },
    },
  }));

function replaced(write: Instruction & { readonly kind: 'replace' }, object: Node): Instruction {
  return { ...write, object };
}

const renewed = (target: Target, now: number): Target => {
  const { lacksAttempt: _, ...known } = target;
  return target.state === 'intended' ? { ...known, since: rfc3339(now) } : target;
};

/** Sends each request for a Job before the record that says so. */
const ahead: CattleLeader = async (view) => {
  const deeds = await realCattleLeader(view);
  const isJob = (each: (typeof deeds)[number]): boolean =>
    each.kind === 'write' && each.key.startsWith('jobs/') && each.object !== undefined;
  const plan = deeds.findIndex((each) => each.kind === 'write' && each.key === 'plans/plan');
  const job = deeds.findIndex(isJob);
  if (plan < 0 || job < plan) return deeds;
  return [...deeds.slice(0, plan), ...deeds.slice(job, job + 1), ...deeds.slice(plan, job)];
};

export const CATTLE_MISTAKES: readonly CattleMistake[] = [
  {
    name: 'the leader creates a Job before the Plan records the intent',
    configuration: configureCattle('a b'),
    leader: ahead,
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader uses one slot more than the Plan allows',
    configuration: configureCattle('a b'),
    leader: resolving(({ maxInFlight }) => ({ maxInFlight: maxInFlight + 1 })),
    breaks: 'concurrent-workers',
  },
  {
    name: 'the leader does not record on the Node that its Job has succeeded',
    configuration: configureCattle('a', { installsK3s: true }),
    leader: reading((seen) => (seen.kind === 'none' ? seen : { ...seen, isUnkept: undefined })),
    breaks: 'one-signal-per-attempt',
  },
  {
    name: 'the leader names the attempt of a node after the present time',
    configuration: configureCattle('a', { hasHook: true }),
    leader: resolving(({ targets }, now) => ({
      targets: targets.map((target) => renewed(target, now)),
    })),
    breaks: 'one-job-per-attempt',
  },
  {
    name: 'the leader ignores the hooks of the policy',
    configuration: configureCattle('a', { hasHook: true }),
    leader: ruling(() => ({ hooks: [] })),
    breaks: 'job-before-drain',
  },
  {
    name: 'the leader cordons the node and does not drain it',
    configuration: configureCattle('a', { drains: 'the leader' }),
    leader: ruling(({ drain }) => ({ drain: { ...drain, cordonOnly: true } })),
    breaks: 'drained-before-work',
  },
  {
    name: 'the leader treats a running Job as succeeded',
    configuration: configureCattle('a'),
    leader: reading((seen) => (seen.kind === 'working' ? { ...seen, kind: 'succeeded' } : seen)),
    breaks: 'done-runs-it',
  },
  {
    name: 'the leader removes every cordon from a node that is done',
    configuration: configureCattle('a', { moves: ['cordon'] }),
    leader: finishing((node) => ({ ...node, spec: {} })),
    breaks: 'cordon-of-others-kept',
  },
  {
    name: 'the leader keeps the cordon of a node that is done',
    configuration: configureCattle('a', { drains: 'the Job' }),
    leader: finishing((node, before) => ({ ...node, spec: before?.spec ?? {} })),
    breaks: 'no-cordon-left',
  },
  {
    name: 'the leader never starts a held Job',
    configuration: configureCattle('a', { drains: 'the leader' }),
    leader: changingSignal(() => ({ acknowledge: () => undefined })),
    breaks: EVERY_RUN_ENDS,
  },
];
