/** Owns what `refit status` sees, for tests: plans and nodes through the real dialect and the real decision. */
import type { Plan, TargetStatus } from '../../src/api/autopilot/plan.ts';
import { type AskControlPlane, observe } from '../../src/cli/status/observe.ts';
import type { PlanView } from '../../src/cli/status/view.ts';
import { autopilot } from '../../src/dialects/autopilot/dialect.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { buildSignal, type OriginalSignal } from './signals.ts';
import { later } from './times.ts';
import { buildWorld } from './worlds.ts';

export const READY: AskControlPlane = async (endpoints) =>
  await Promise.resolve(endpoints.map(({ name }) => ({ name, ready: true })));

/** One look, that many milliseconds after the beginning; every API server is ready unless told otherwise. */
export async function lookAt(
  plans: readonly Plan[],
  controllers: readonly KubeObject[],
  workers: readonly KubeObject[],
  now: number,
  ask: AskControlPlane = READY,
): Promise<PlanView[]> {
  return await observe(autopilot, { plans: () => plans, world: buildWorld(controllers, workers) }, ask, now);
}

/** The object with a signal on it; in addition to what it says already. */
export function signalled<T extends KubeObject>(object: T, signal: OriginalSignal = {}, more: object = {}): T {
  const annotations = { ...object.metadata.annotations, ...buildSignal(signal), ...more };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Targets as a plan's status records them, one second after the beginning unless told otherwise. */
export function recorded(states: Readonly<Record<string, string>>, since: string = later(1000)): TargetStatus[] {
  return Object.entries(states).map(([name, state]) => ({ name, state, lastUpdatedTimestamp: since }));
}

/** The status of a plan with one command. */
export function statusOf(
  state: string,
  controllers: readonly TargetStatus[],
  workers: readonly TargetStatus[],
  description?: string,
): NonNullable<Plan['status']> {
  const k0supdate = { controllers: [...controllers], workers: [...workers] };
  return { state, commands: [{ id: 0, state, ...(description === undefined ? {} : { description }), k0supdate }] };
}
