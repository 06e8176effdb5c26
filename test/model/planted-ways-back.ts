/** Planted mistakes of roll-backs, and of hooks for a whole plan. The explorer must find them. */
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { ROLLS_BACK_ANNOTATION } from '../../src/engine/model/earlier-versions.ts';
import { type KubeObject, withoutAnnotations } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { SIGNAL_DATA_ANNOTATION } from '../../src/signal/names.ts';
import { type Leader, leaderWith, realLeader } from './leader.ts';
import { begun } from './ways-back.ts';

/** Treats a roll-back plan that failed as a plan that goes forward. */
export const forgetsItsWayBack: Leader = async (view) => {
  if (begun(view.plan).status?.state !== 'ApplyFailed') return await realLeader(view);
  return await realLeader({
    ...view,
    plan: withoutAnnotations(view.plan, ROLLS_BACK_ANNOTATION),
    current: withoutAnnotations(view.current, ROLLS_BACK_ANNOTATION),
  });
};

const controllersFirst = leaderWith({
  ...autopilot,
  resolve: (...given) => {
    const { rollsBack: _, ...rollout } = autopilot.resolve(...given);
    return { ...rollout, stages: rollout.stages.toReversed() };
  },
});

/** Starts with the controllers in a roll-back too, and ignores the versions that would prevent this. */
export const controllersGoBackFirst: Leader = async (view) => {
  if (view.plan.metadata.annotations?.[ROLLS_BACK_ANNOTATION] === undefined)
    return await realLeader(view);
  const { controller, worker } = view.objects;
  return await controllersFirst({
    ...view,
    objects: { controller: controller.map(withoutVersion), worker: worker.map(withoutVersion) },
  });
};

function withoutVersion<T extends KubeObject>(object: T): T {
  const { status, ...more } = object as KubeObject & { status?: Record<string, unknown> };
  const { nodeInfo: _info, k0sVersion: _version, ...kept } = status ?? {};
  return { ...more, status: kept } as KubeObject as T;
}

/** Sees the state of the roll-back plan's own workers, but not the state of any other worker. */
export const seesItsOwnWorkersOnly: Leader = async (view) => {
  if (view.plan.metadata.annotations?.[ROLLS_BACK_ANNOTATION] === undefined)
    return await realLeader(view);
  const worker = view.objects.worker.map((object) => {
    const { status } = decodeSignal(object.metadata.annotations) ?? {};
    if (isWorkerOf(view.plan, object) || status?.status !== 'Completed') return object;
    return withoutAnnotations(object, SIGNAL_DATA_ANNOTATION);
  });
  return await realLeader({ ...view, objects: { ...view.objects, worker } });
};

function isWorkerOf({ spec }: Plan, { metadata: { name } }: KubeObject): boolean {
  return spec.commands.some(({ k0supdate }) =>
    k0supdate?.targets.workers?.discovery.static?.nodes?.includes(name),
  );
}

/** Records a target of a roll-back plan as done as soon as the target has started. */
export const backTooEarly: Leader = async (view) => {
  const { writes, ...deeds } = await realLeader(view);
  const isBack = view.plan.metadata.annotations?.[ROLLS_BACK_ANNOTATION] !== undefined;
  return { ...deeds, writes: isBack ? writes.map(hasty) : writes };
};

function hasty(object: KubeObject): KubeObject {
  if (object.kind !== plans.kind) return object;
  const text = JSON.stringify(object).replaceAll('SignalSent', 'SignalCompleted');
  return JSON.parse(text) as Plan;
}

/** Runs the hooks after a plan as soon as the plan begins. */
export const runsHooksAfterPlanFirst: Leader = async (view) => {
  const early = (view.policy.hooks ?? []).map((hook) =>
    hook.when === 'afterPlan' ? { ...hook, when: 'beforePlan' as const } : hook,
  );
  const { hookRuns, ...deeds } = await realLeader({
    ...view,
    policy: { ...view.policy, hooks: early },
  });
  return {
    ...deeds,
    hookRuns: hookRuns.map((run) => ({
      ...run,
      hook: { ...run.hook, when: 'afterPlan' as const },
    })),
  };
};
