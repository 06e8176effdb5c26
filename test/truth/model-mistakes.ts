/** Planted mistakes: surfaces that tell something untrue. Each of them breaks an invariant in some state. */
import type { NodeRolloutStatus } from '../../src/api/refit/node-rollout.ts';
import { type PlanJson, planJson } from '../../src/cli/status/json-form.ts';
import { readForPeople } from '../../src/engine/explain/inspect.ts';
import { statusOf } from '../../src/engine/report/node-rollout-status.ts';
import { REAL_SURFACES, type Surfaces } from './model-renderer.ts';

export interface ToldMistake {
  readonly name: string;
  /** The name of one of the small configurations. */
  readonly configuration: string;
  readonly surfaces: Surfaces;
  readonly breaks: string;
}

const EDITED = '1 worker, the version of the plan is edited';
const FAILS = '1 worker, retried after it has failed';
const PAUSED = '1 controller that fails, 1 worker, the plan is paused';
const ABORTED = '1 worker, the plan is aborted, the new service never answers';
const ROLLED_BACK = '1 upgraded worker, the completed plan is rolled back';
const ONE_FAILS = '2 workers, one of them fails, the policy allows a failure later';

const A_MOMENT = '2026-11-20T09:00:00Z';

export const TOLD_MISTAKES: readonly ToldMistake[] = [
  {
    name: 'the JSON form tells the version of the plan as the version of a node that has not begun',
    configuration: EDITED,
    surfaces: json(({ stages, ...plan }) => ({
      ...plan,
      stages: stages.map((stage) => ({
        ...stage,
        targets: stage.targets.map((target) =>
          target.installed === undefined ? target : { ...target, installed: stage.version },
        ),
      })),
    })),
    breaks: 'told-version-runs',
  },
  {
    name: 'the leader calls every ended plan completed',
    configuration: FAILS,
    surfaces: nodeRollout(({ conditions = [], ...status }) => ({
      ...status,
      conditions: conditions.map((condition) =>
        condition.type === 'Completed' && status.phase === 'failed'
          ? { ...condition, status: 'True', message: 'the plan is completed' }
          : condition,
      ),
    })),
    breaks: 'done-is-all',
  },
  {
    name: 'a target in progress is counted twice',
    configuration: EDITED,
    surfaces: {
      ...REAL_SURFACES,
      read: (...given) => {
        const reading = readForPeople(...given);
        const { counts } = reading;
        return { ...reading, counts: { ...counts, pending: counts.pending + counts.inProgress } };
      },
    },
    breaks: 'counts-add-up',
  },
  {
    name: 'a failed node is told to have failed because of another node',
    configuration: ONE_FAILS,
    surfaces: json(({ stages, ...plan }) => ({
      ...plan,
      stages: stages.map((stage) => ({
        ...stage,
        targets: stage.targets.map((target) =>
          target.failure === undefined ? target : { ...target, failure: 'w2 did not report' },
        ),
      })),
    })),
    breaks: 'own-cause',
  },
  {
    name: 'the leader tells when a paused plan ends',
    configuration: PAUSED,
    surfaces: nodeRollout((status) => ({
      ...status,
      eta: { at: A_MOMENT, earliest: A_MOMENT, latest: A_MOMENT },
    })),
    breaks: 'no-end-unforeseen',
  },
  {
    name: 'the JSON form does not know that the plan rolls a run back',
    configuration: ROLLED_BACK,
    surfaces: json((plan) => ({ ...plan, rollsBackRun: undefined })),
    breaks: 'roll-back-is-none-else',
  },
  {
    name: 'the NodeRollout shows a failed plan as running',
    configuration: FAILS,
    surfaces: nodeRollout((status) =>
      status.phase === 'failed' ? { ...status, phase: 'running' } : status,
    ),
    breaks: 'same-everywhere',
  },
  {
    name: 'a wait is told of a node that does not exist',
    configuration: EDITED,
    surfaces: json(({ waits, ...plan }) => ({
      ...plan,
      waits: waits.map((wait) => ({ ...wait, target: 'w9' })),
    })),
    breaks: 'awaited-exists',
  },
  {
    name: 'the pause of a plan is not told',
    configuration: PAUSED,
    surfaces: json((plan) => ({ ...plan, paused: undefined })),
    breaks: 'stop-is-told',
  },
  {
    name: 'an aborted plan is told to wait',
    configuration: ABORTED,
    surfaces: json((plan) => ({
      ...plan,
      waits: [
        {
          gate: 'not-aborted',
          reason: { code: 'Aborted', message: 'the plan was aborted' },
          since: plan.created,
        },
      ],
    })),
    breaks: 'end-ends-waits',
  },
  {
    name: 'the NodeRollout lists a run that never was',
    configuration: FAILS,
    surfaces: nodeRollout(({ history = [], ...status }) => ({
      ...status,
      history: history.flatMap((run) => [run, { ...run, id: 'run-0' }]),
    })),
    breaks: 'runs-are-admitted',
  },
];

/** Returns the surfaces of which the JSON form, and all texts, are changed. */
function json(change: (plan: PlanJson) => PlanJson): Surfaces {
  return {
    ...REAL_SURFACES,
    json: (...given) => {
      const plan = planJson(...given);
      return { ...plan, ...change(plan) };
    },
  };
}

/** Returns the surfaces of which the NodeRollout is changed. */
function nodeRollout(change: (status: NodeRolloutStatus) => NodeRolloutStatus): Surfaces {
  return { ...REAL_SURFACES, nodeRollout: (...given) => change(statusOf(...given)) };
}
