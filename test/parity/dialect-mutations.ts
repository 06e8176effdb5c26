/**
 * The mutations of the dialect. In each mutation, one check of the mapping is missing, so that wrong nodes are
 * signalled or wrong answers count.
 */
import type { Plan, TargetSpec } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import type { Node } from '../../src/kube/resources.ts';
import { passOver, wordsOf } from '../support/builders/autopilot-passes.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed, selected } from '../support/builders/plans.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { buildWorld } from '../support/builders/worlds.ts';
import { later } from '../support/clock/times.ts';
import { type Complaint, mutation } from './mutation.ts';

type Front = Dialect<Plan>;
type Read = Front['signal']['read'];

const { signal } = autopilot;
const reading = (read: Read): Front => ({ ...autopilot, signal: { ...signal, read } });
const commandFor = (workers: TargetSpec) => ({ k0supdate: buildUpdate({ targets: { workers } }) });
const entries = (words: Readonly<Record<string, string>>) =>
  Object.entries(words).map(([name, word]) => ({
    name,
    state: `Signal${word}`,
    lastUpdatedTimestamp: later(0),
  }));
const answered = (name: string, status: string, created?: string): Node =>
  buildNode(name, {
    annotations: buildSignal({ status, ...(created === undefined ? {} : { created }) }),
  });

/** Tests that the second command is sent to a node that still has the answer to the first command. */
function secondCommandIsSent(dialect: Front): Complaint {
  const state = 'SchedulableWait';
  const plan = buildPlan(
    { commands: [commandFor(listed('w1')), commandFor(listed('w1'))] },
    {
      state,
      commands: [
        { id: 0, state: 'Completed', k0supdate: { workers: entries({ w1: 'Completed' }) } },
        { id: 1, state, k0supdate: { workers: entries({ w1: 'Pending' }) } },
      ],
    },
  );
  const passed = passOver({ plan, world: buildWorld([], [answered('w1', 'Completed')]) }, dialect);
  return passed.signalled.includes('w1')
    ? undefined
    : `never sent, and ${wordsOf(passed.plan)['1/w1']}`;
}

/** Tests that a plan is sent to a node that has the answer to an earlier plan with the same id. */
function reusedIdIsSent(dialect: Front): Complaint {
  const plan = buildPlan({ commands: [commandFor(listed('w1'))] });
  const leftover = answered('w1', 'Completed', later(-1000));
  const passed = passOver({ plan, world: buildWorld([], [leftover]) }, dialect);
  return passed.signalled.includes('w1')
    ? undefined
    : `never sent, and ${wordsOf(passed.plan)['w1']}`;
}

function wrongSelectorTouchesNobody(dialect: Front): Complaint {
  const plan = buildPlan({ commands: [commandFor(selected('pool blue'))] });
  const { signalled } = passOver(
    { plan, world: buildWorld([], [buildNode('w1'), buildNode('w2')]) },
    dialect,
  );
  return signalled.length === 0 ? undefined : `${signalled.join()} signalled`;
}

/** Tests that no other node is signalled if the decision is repeated while a node is at work. */
function nobodyBesideOneAtWork(dialect: Front): Complaint {
  const state = 'Schedulable';
  const workers = entries({ w1: 'Sent', w2: 'Pending' });
  const plan = buildPlan(
    { commands: [commandFor(listed('w1', 'w2'))] },
    { state, commands: [{ id: 0, state, k0supdate: { workers } }] },
  );
  const { signalled } = passOver(
    { plan, world: buildWorld([], [answered('w1', 'Restart'), buildNode('w2')]) },
    dialect,
  );
  return signalled.length === 0 ? undefined : `${signalled.join()} signalled beside w1`;
}

function minorVersionIsNotSkipped(dialect: Front): Complaint {
  const node = buildNode('w1');
  const old = {
    ...node,
    status: { ...node.status, nodeInfo: { kubeletVersion: 'v1.34.1+k0s.0' } },
  };
  const plan = buildPlan({ commands: [commandFor(listed('w1'))] });
  const passed = passOver({ plan, world: buildWorld([], [old]) }, dialect);
  const { state } = wordsOf(passed.plan);
  return state === 'Warning' && passed.signalled.length === 0
    ? undefined
    : `${state}, from v1.34 to v1.36 at once`;
}

function withEmptySelectors(plan: Plan): Plan {
  return {
    ...plan,
    spec: { ...plan.spec, commands: plan.spec.commands.map(() => commandFor(selected(''))) },
  };
}

const { versions: _versions, ...withoutVersions } = autopilot;

export const DIALECT_MUTATIONS = [
  mutation(
    {
      weakness: 4,
      without:
        'the comparison of the command id: every answer to the plan counts for every command',
      complaint: 'never sent, and Completed',
    },
    secondCommandIsSent,
    {
      real: autopilot,
      mutated: reading((world, by, stage, ...rest) =>
        signal.read(world, by, { ...stage, command: 0 }, ...rest),
      ),
    },
  ),
  mutation(
    {
      weakness: 5,
      without: 'the comparison with the birth of the plan: every answer under its id counts',
      complaint: 'never sent, and Completed',
    },
    reusedIdIsSent,
    {
      real: autopilot,
      mutated: reading((world, by, ...rest) =>
        signal.read(world, { ...by, source: { ...by.source, created: later(-60_000) } }, ...rest),
      ),
    },
  ),
  mutation(
    {
      weakness: 6,
      without: 'the refusal of a selector that does not parse: it counts as an empty one',
      complaint: 'w1 signalled',
    },
    wrongSelectorTouchesNobody,
    {
      real: autopilot,
      mutated: {
        ...autopilot,
        resolve: (plan, ...rest) => autopilot.resolve(withEmptySelectors(plan), ...rest),
      },
    },
  ),
  mutation(
    {
      weakness: 7,
      without: 'the count of what is at work: every pass may start as many as the plan allows',
      complaint: 'w2 signalled beside w1',
    },
    nobodyBesideOneAtWork,
    {
      real: autopilot,
      mutated: {
        ...autopilot,
        resolve: (...given) => {
          const rollout = autopilot.resolve(...given);
          const stages = rollout.stages.map((stage) => ({
            ...stage,
            maxInFlight: stage.maxInFlight + 1,
          }));
          return { ...rollout, stages };
        },
      },
    },
  ),
  mutation(
    {
      weakness: 10,
      without: 'the judgement of versions',
      complaint: 'SchedulableWait, from v1.34 to v1.36 at once',
    },
    minorVersionIsNotSkipped,
    { real: autopilot, mutated: withoutVersions },
  ),
];
