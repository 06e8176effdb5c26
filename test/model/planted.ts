/** Owns the mistakes that are planted to see the explorer find them, each in place of one part of the real thing. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/dialect.ts';
import type { Campaign, Stage } from '../../src/engine/model.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { afterStep } from './host.ts';
import type { Leader, LeaderView } from './leader.ts';
import { leaderWith, realLeader } from './leader.ts';
import type { NodeRules } from './turn-trail.ts';

/** Takes its own cache's word for it that the plan is still the one that it decides on. */
export const onStaleView: Leader = async (view) => await realLeader({ ...view, current: view.plan });

/** Signals a target while the write that records it is still on its way. */
export const signalBeforeIntent: Leader = async (view) => await withSignalsAhead(realLeader, view);

/** Takes any target that may start, and where no answer says that the choice is recorded, goes on as if it were. */
export const randomChoiceAfterLostWrite: Leader = async (view) => {
  const orders = [realLeader, leaderWithStages(reversed)];
  const writes = await Promise.all(orders.map(async (leader) => await withSignalsAhead(leader, view)));
  return writes.flat();
};

/** Signals that a decision leads to as soon as it is made, beside the write that records it. */
async function withSignalsAhead(leader: Leader, view: LeaderView): Promise<readonly KubeObject[]> {
  const writes = await leader(view);
  const recorded = writes.find((object): object is Plan => object.kind === plans.kind);
  if (!recorded) return writes;
  return [...writes, ...(await leader({ ...view, plan: recorded, current: recorded }))];
}

/** Starts stages without regard to what comes before them. */
export const stagesInAnyOrder: Leader = async (view) => {
  const backwards = leaderWith({
    ...autopilot,
    resolve: (...given) => {
      const campaign = autopilot.resolve(...given);
      return { ...campaign, stages: campaign.stages.toReversed() };
    },
  });
  return [...(await realLeader(view)), ...(await backwards(view))];
};

export const withoutLimit = leaderWithStages((stage) => ({ ...stage, maxInFlight: Infinity }));

/** Takes a node's word that it is about to restart for its word that it is done. */
export const doneTooEarly = leaderWith({
  ...autopilot,
  signal: {
    ...autopilot.signal,
    read: (...given) => {
      const seen = autopilot.signal.read(...given);
      return seen.kind === 'working' && seen.step === 'Restart' ? { ...seen, kind: 'succeeded' } : seen;
    },
  },
});

export const neverSignals: Leader = async (view) => (await realLeader(view)).filter(({ kind }) => kind === plans.kind);

function leaderWithStages(change: (stage: Stage) => Stage): Leader {
  const changed = (campaign: Campaign): Campaign => ({ ...campaign, stages: campaign.stages.map(change) });
  return leaderWith({ ...autopilot, resolve: (...given) => changed(autopilot.resolve(...given)) });
}

function reversed(stage: Stage): Stage {
  return { ...stage, targets: stage.targets.toReversed() };
}

type AfterStep = NodeRules['afterStep'];
const OK = { ok: true } as const;

export const noTrialRun: AfterStep = (step, host, ...rest) =>
  step.kind === 'try-out' ? { host, outcome: OK } : afterStep(step, host, ...rest);

export const previousIsNotKept: AfterStep = (step, host, ...rest) =>
  step.kind === 'keep-previous' ? { host, outcome: OK } : afterStep(step, host, ...rest);

/** Fetches the payload although it lies there whole. */
export const downloadsAnew: AfterStep = (step, host, ...rest) =>
  afterStep(step, step.kind === 'download' ? { ...host, staged: undefined } : host, ...rest);

/** Ends the service on the way back, although nothing of the new binary ever ran. */
export const rollsBackRoughly: AfterStep = (step, before, ...rest) => {
  const { host, outcome } = afterStep(step, before, ...rest);
  const { service } = host;
  if (step.kind !== 'roll-back' || service?.life !== 'up') return { host, outcome };
  return { host: { ...host, service: { ...service, life: 'stopping' } }, outcome };
};
