/** Planted mistakes of leaders: the explorer must find them. */
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { OBJECTS } from '../../src/dialects/autopilot/plan/autopilot-signal.ts';
import { TARGET_STATES } from '../../src/dialects/autopilot/plan/states.ts';
import { cordonOwner, withoutCordon } from '../../src/drain/cordon-marks.ts';
import { ABORT_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { Rollout, Stage } from '../../src/engine/model/rollout.ts';
import { type KubeObject, withoutAnnotations } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { HOLD_ANNOTATION, holdOn } from '../../src/signal/holds.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { sameJson } from '../../src/util/json.ts';
import { type Deeds, type Leader, type LeaderView, leaderWith, realLeader } from './leader.ts';

/** Trusts that the plan in its own cache is current, and does not read the plan again. */
export const onStaleView: Leader = async (view) =>
  await realLeader({ ...view, current: view.plan });

/** Signals a target before the leader's write that records the target is accepted. */
export const signalBeforeIntent: Leader = async (view) => await withSignalsAhead(realLeader, view);

/**
 * Chooses any target that may start. If no answer confirms that the choice is recorded, continues as if it were
 * recorded.
 */
export const randomChoiceAfterLostWrite: Leader = async (view) => {
  const controls = [realLeader, leaderWithStages(reversed)];
  return together(
    ...(await Promise.all(controls.map(async (leader) => await withSignalsAhead(leader, view)))),
  );
};

/** Sends the signals that follow from a decision immediately, together with the write that records the decision. */
async function withSignalsAhead(leader: Leader, view: LeaderView): Promise<Deeds> {
  const deeds = await leader(view);
  const recorded = deeds.writes.find((object): object is Plan => object.kind === plans.kind);
  return recorded
    ? together(deeds, await leader({ ...view, plan: recorded, current: recorded }))
    : deeds;
}

function together(...all: readonly Deeds[]): Deeds {
  return {
    writes: all.flatMap(({ writes }) => writes),
    begun: all.flatMap(({ begun }) => begun),
    hookRuns: all.flatMap(({ hookRuns }) => hookRuns),
  };
}

/** Requests a prefetch from every waiting node. */
export const asksEveryone: Leader = async (view) =>
  await realLeader({ ...view, policy: { ...view.policy, prefetch: 'all' } });

/** Starts stages without waiting for the stages before them. */
export const stagesInAnyOrder: Leader = async (view) => {
  const backwards = leaderWith({
    ...autopilot,
    resolve: (...given) => {
      const rollout = autopilot.resolve(...given);
      return { ...rollout, stages: rollout.stages.toReversed() };
    },
  });
  return together(await realLeader(view), await backwards(view));
};

export const withoutLimit = leaderWithStages((stage) => ({ ...stage, maxInFlight: Infinity }));

const { foreignWork: _unread, ...unaware } = autopilot;
/** Ignores what nodes still do for a plan that was replaced. */
export const ignoresForeignWork = leaderWith(unaware);

/** Treats a node that reports its imminent restart as done. */
export const doneTooEarly = leaderWith({
  ...autopilot,
  signal: {
    ...autopilot.signal,
    read: (...given) => {
      const seen = autopilot.signal.read(...given);
      return seen.kind === 'working' && seen.step === 'Restart'
        ? { ...seen, kind: 'succeeded' }
        : seen;
    },
  },
});

/** Knows a signal of k0s's own leader only by the id that the plan has now. */
export const knowsOnlyTheId = leaderWith({
  ...autopilot,
  signal: {
    ...autopilot.signal,
    read: (world, rollout, stage, target, plan) => {
      const object = world.get(OBJECTS[stage.role], target.name);
      const { annotations } = object?.metadata ?? {};
      const isUnknown =
        annotations?.[ROLLOUT_ANNOTATION] === undefined &&
        decodeSignal(annotations)?.planId !== rollout.id;
      return isUnknown
        ? { kind: 'none' }
        : autopilot.signal.read(world, rollout, stage, target, plan);
    },
  },
});

/** Ends a plan as completed, even if targets failed within the failure budget. */
export const forgetsFailures: Leader = async (view) => {
  const { writes, ...deeds } = await realLeader(view);
  const completed = (plan: Plan): Plan =>
    plan.status?.state === 'ApplyFailed'
      ? { ...plan, status: { ...plan.status, state: 'Completed' } }
      : plan;
  return {
    ...deeds,
    writes: writes.map((object) =>
      object.kind === plans.kind ? completed(object as Plan) : object,
    ),
  };
};

export const neverSignals: Leader = without(({ kind }) => kind !== plans.kind);

/** Continues with a node as soon as it is cordoned, without a drain. */
export const drainsNobody: Leader = async (view) => {
  const names = view.objects.worker.map(({ metadata }) => metadata.name);
  return await realLeader({ ...view, drains: new Map(names.map((name) => [name, 'drained'])) });
};

/** Starts all waves at the same time. */
export const knowsNoWaves: Leader = async (view) => {
  const { waves: _unread, ...policy } = view.policy;
  return await realLeader({ ...view, policy });
};

export const asksForNoApproval: Leader = async (view) => {
  const waves = (view.policy.waves ?? []).map((wave) => ({ ...wave, needsApproval: false }));
  return await realLeader({ ...view, policy: { ...view.policy, waves } });
};

export const allowsAnyFailure: Leader = async (view) =>
  await realLeader({ ...view, policy: { ...view.policy, maxFailures: Infinity } });

/** Gives a Job a new name if it does not know any Job. */
export const namesJobsAnew: Leader = async (view) => {
  const { hookRuns, ...deeds } = await realLeader(view);
  if (view.hookResults.length > 0) return { ...deeds, hookRuns };
  return {
    ...deeds,
    hookRuns: [...hookRuns, ...hookRuns.map((run) => ({ ...run, id: `${run.id}-2` }))],
  };
};

export const runsNoHooks: Leader = async (view) => {
  const { hooks: _unread, ...policy } = view.policy;
  return await realLeader({ ...view, policy });
};

/** Treats a running Job as succeeded. */
export const awaitsNoJob: Leader = async (view) => {
  const hookResults = view.hookResults.map((result) => ({
    ...result,
    state: 'succeeded' as const,
  }));
  return await realLeader({ ...view, hookResults });
};

export const endsAtFailure: Leader = async (view) =>
  await realLeader({ ...view, policy: { ...view.policy, pausesOnFailure: false } });

export const seesNoHolds: Leader = async (view) => {
  const free = (object: KubeObject): KubeObject => withoutAnnotations(object, HOLD_ANNOTATION);
  const { controller, worker } = view.objects;
  return await realLeader({
    ...view,
    objects: { controller: controller.map(free), worker: worker.map(free) },
  });
};

export const readsNoPins: Leader = async (view) => {
  const { pins: _unread, ...policy } = view.policy;
  return await realLeader({ ...view, policy });
};

/** Continues without a held controller, although a plan may only leave out workers. */
export const leavesOutControllers: Leader = async (view) => {
  const held = view.objects.controller
    .filter((object) => holdOn(object) !== undefined)
    .map(({ metadata }) => metadata.name);
  const { status } = view.plan;
  if (!status) return await realLeader(view);
  const commands = status.commands.map(({ k0supdate, ...command }) => ({
    ...command,
    k0supdate: {
      ...k0supdate,
      controllers: (k0supdate?.controllers ?? []).map((target) =>
        held.includes(target.name) ? { ...target, state: TARGET_STATES.skipped } : target,
      ),
    },
  }));
  const plan: Plan = { ...view.plan, status: { ...status, commands } };
  return await realLeader({ ...view, plan });
};

export const triesOnceMore: Leader = async (view) => {
  const { retry, ...policy } = view.policy;
  const more = retry && { retry: { ...retry, attempts: retry.attempts + 1 } };
  return await realLeader({ ...view, policy: { ...policy, ...more } });
};

/** Removes every cordon, whoever set it, as k0s Autopilot does. */
export const liftsAnyCordon: Leader = async (view) => {
  const { policy } = view;
  return await realLeader({
    ...view,
    policy: { ...policy, drain: { ...policy.drain, uncordon: 'always' } },
  });
};

/** Removes a cordon only together with its last answer to the agent. If there is no such answer, the cordon stays. */
export const neverTidies: Leader = without((object, view) => {
  const before = view.objects.worker.find(({ metadata }) => metadata.name === object.metadata.name);
  if (!before) return false;
  const [old, signal] = [before, object].map(({ metadata }) => decodeSignal(metadata.annotations));
  return (
    cordonOwner(before) !== undefined && cordonOwner(object) === undefined && sameJson(old, signal)
  );
});

/** Ends a plan as soon as somebody aborts it, without informing the agents. */
export const abandons: Leader = async (view) => {
  const { plan, current } = view;
  const { status, metadata } = plan;
  const isAborted = metadata.annotations?.[ABORT_ANNOTATION] !== undefined;
  if (!isAborted || !status) return await realLeader(view);
  const isOver = !status.state.startsWith('Schedulable');
  const isFresh = metadata.resourceVersion === current.metadata.resourceVersion;
  return {
    begun: [],
    hookRuns: [],
    writes: isOver || !isFresh ? [] : [{ ...plan, status: { ...status, state: 'ApplyFailed' } }],
  };
};

/** Uncordons a node as soon as its agent works on the service. */
export const liftsTooEarly: Leader = async (view) => {
  const deeds = await realLeader(view);
  const early = view.objects.worker.filter(
    (node) =>
      decodeSignal(node.metadata.annotations)?.status?.status === 'Restart' &&
      withoutCordon(node) !== node,
  );
  return { ...deeds, writes: [...deeds.writes, ...early.map(withoutCordon)] };
};

function without(isLeftOut: (object: KubeObject, view: LeaderView) => boolean): Leader {
  return async (view) => {
    const deeds = await realLeader(view);
    return { ...deeds, writes: deeds.writes.filter((object) => !isLeftOut(object, view)) };
  };
}

function leaderWithStages(change: (stage: Stage) => Stage): Leader {
  const changed = (rollout: Rollout): Rollout => ({
    ...rollout,
    stages: rollout.stages.map(change),
  });
  return leaderWith({ ...autopilot, resolve: (...given) => changed(autopilot.resolve(...given)) });
}

function reversed(stage: Stage): Stage {
  return { ...stage, targets: stage.targets.toReversed() };
}
