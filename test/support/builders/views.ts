/** The input of `refit status`, for tests. The real dialect and the real decision process the plans and nodes. */
import type { Plan, TargetStatus } from '../../../src/api/autopilot/plan.ts';
import type { UpgradePolicy } from '../../../src/api/refit/upgrade-policy.ts';
import type { AskControlPlane, Sources } from '../../../src/cli/status/inspection-sources.ts';
import type { ShownPlan } from '../../../src/cli/status/json-form.ts';
import { observe, type ViewParts } from '../../../src/cli/status/observe.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import { later } from '../clock/times.ts';
import { textsOf } from './dialects.ts';
import { buildSignal, type OriginalSignal } from './signals.ts';
import { buildWorld } from './worlds.ts';

export const READY: AskControlPlane = async (endpoints) =>
  await Promise.resolve(endpoints.map(({ name }) => ({ name, ready: true })));

/** Returns the parts of the input. By default every API server is ready, and there are no pods. */
export function buildViewParts(
  sources: Partial<Sources> = {},
  policies: readonly UpgradePolicy[] = [],
): ViewParts {
  return {
    sources: {
      controlPlane: READY,
      drainPreview: async () => await Promise.resolve({ evictable: 0, obstacles: [], refused: [] }),
      drain: async () => await Promise.resolve({ left: 0 }),
      preconditions: async () => await Promise.resolve([]),
      decisions: async () =>
        await Promise.resolve({
          plan: 'autopilot/autopilot',
          place: 'k0s-autopilot/autopilot-autopilot',
          exists: true,
          approvals: [],
          accepted: [],
        }),
      drainDelegation: async () => await Promise.resolve(true),
      health: async () => await Promise.resolve(undefined),
      hooks: async () => await Promise.resolve(undefined),
      failures: async () => await Promise.resolve(undefined),
      runs: async () => await Promise.resolve(undefined),
      hasNamespace: async () => await Promise.resolve(true),
      budgetPods: async () => await Promise.resolve({}),
      silencing: async () => await Promise.resolve(undefined),
      locks: async () => await Promise.resolve({ known: [], unseen: [] }),
      ...sources,
    },
    policies: { list: () => policies },
    textsOf,
  };
}

/** Runs one inspection at the time `now`, in milliseconds since the Unix epoch. */
export async function lookAt(
  plans: readonly Plan[],
  controllers: readonly KubeObject[],
  workers: readonly KubeObject[],
  now: number,
  parts: ViewParts = buildViewParts(),
): Promise<ShownPlan[]> {
  return await observe(
    { dialect: autopilot, plans: () => plans, world: buildWorld(controllers, workers) },
    parts,
    now,
  );
}

/** Returns the object with a signal on it, in addition to the annotations that it already has. */
export function signalled<T extends KubeObject>(
  object: T,
  signal: OriginalSignal = {},
  more: object = {},
): T {
  const annotations = { ...object.metadata.annotations, ...buildSignal(signal), ...more };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Returns targets as the status of a plan records them, by default one second after the beginning. */
export function recorded(
  states: Readonly<Record<string, string>>,
  since: string = later(1000),
): TargetStatus[] {
  return Object.entries(states).map(([name, state]) => ({
    name,
    state,
    lastUpdatedTimestamp: since,
  }));
}

/** The status of a plan with one command. */
export function statusOf(
  state: string,
  controllers: readonly TargetStatus[],
  workers: readonly TargetStatus[],
  description?: string,
): NonNullable<Plan['status']> {
  const k0supdate = { controllers: [...controllers], workers: [...workers] };
  return {
    state,
    commands: [{ id: 0, state, ...(description === undefined ? {} : { description }), k0supdate }],
  };
}
