/** The Plans of the scenes. */
import { setTimeout as pause } from 'node:timers/promises';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { apiVersionOf } from '../../../src/kube/resources.ts';
import { until } from '../wait.ts';
import type { Scene } from './scene.ts';

export interface PlanOptions {
  readonly id?: string;
  readonly concurrent?: number;
  readonly controllers?: readonly string[];
  readonly workers?: readonly string[];
  readonly platform?: { readonly url: string; readonly sha256: string };
}

/** Returns a Plan for all hosts, as the guide writes it. */
export function planFor(
  { cluster, mirror }: Scene,
  version: string,
  options: PlanOptions = {},
): object {
  const names = (machines: readonly { readonly name: string }[]): string[] =>
    machines.map(({ name }) => name);
  const { controllers = names(cluster.controllers), workers = names(cluster.workers) } = options;
  const { concurrent = 1, id = `to-${version}`, platform = mirror.platform(version) } = options;
  return {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: 'autopilot' },
    spec: {
      id,
      timestamp: 'now',
      commands: [
        {
          k0supdate: {
            version,
            platforms: { 'linux-amd64': platform },
            targets: {
              controllers: {
                discovery: { static: { nodes: controllers } },
                limits: { concurrent: 1 },
              },
              workers: { discovery: { static: { nodes: workers } }, limits: { concurrent } },
            },
          },
        },
      ],
    },
  };
}

/** Resolves with the state of the Plan; the empty text if there is no Plan. */
export async function stateOf({ cluster }: Scene): Promise<string> {
  const plan = await cluster.client.get(plans, 'autopilot').catch(() => undefined);
  return plan?.status?.state ?? '';
}

/** Resolves with the state of one node in the Plan, such as `SignalCompleted`. */
export async function targetState({ cluster }: Scene, name: string): Promise<string | undefined> {
  const plan = await cluster.client.get(plans, 'autopilot').catch(() => undefined);
  const { controllers = [], workers = [] } = plan?.status?.commands?.[0]?.k0supdate ?? {};
  return [...controllers, ...workers].find((target) => target.name === name)?.state;
}

/** Waits until the Plan has one of these states. Returns the state. */
export async function untilState(
  scene: Scene,
  states: readonly string[],
  seconds = 600,
): Promise<string> {
  let state = '';
  await until(`the Plan to be ${states.join(' or ')}`, seconds, async () => {
    state = await stateOf(scene);
    return states.includes(state);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; it is ${state || 'absent'}`);
  });
  return state;
}

/** Gives the hosts a moment without work, so that a measurement begins quietly. */
export const calm = async (): Promise<void> => await pause(5000);
