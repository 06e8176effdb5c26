/** Leaders that reconcile UpdateConfigs on an in-memory API server, and the channels that they request. */
import { onTestFinished } from 'vitest';
import { PLAN_NAME, plans } from '../../../src/api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../../../src/api/autopilot/update-config.ts';
import { phaseOfPlan } from '../../../src/dialects/autopilot/plan/states.ts';
import type { EventNote } from '../../../src/kube/event-series.ts';
import { namespaces } from '../../../src/kube/resources.ts';
import { createMetrics } from '../../../src/runtime/metrics.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { CHECK_ANNOTATION, statusOf } from '../../../src/updates/status.ts';
import { UpdateFollower, type UpdateParts } from '../../../src/updates/update-follower.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { type Script, startStubServer } from '../../faults/stub-server.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { MemoryApi } from './memory-api.ts';

const NEVER = new AbortController().signal;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;
export const DAY = 86_400_000;
const SHA = 'ab'.repeat(32);
export const START = Date.UTC(2027, 0, 1);
export const ALWAYS = {
  type: 'periodic' as const,
  periodic: { days: [], startTime: '00:00', length: '24h' },
};

/** The API server and the clock of the current test. Each test begins with a new server and a new clock. */
export const world = { api: new MemoryApi(), clock: new FakeClock(START) };

export function beginAnew(): void {
  world.api = new MemoryApi();
  world.clock = new FakeClock(START);
  runs('v1.36.0+k0s.0');
  world.api.put(namespaces, { metadata: { name: 'kube-system', uid: 'cluster' } });
}

export function runs(k0sVersion: string): void {
  world.api.put(controlNodes, { metadata: { name: 'c1' }, status: { addresses: [], k0sVersion } });
}

export const indexOf = (version: string, more: Record<string, unknown> = {}): string => {
  const file = { os: 'linux', arch: 'amd64', k0s: `http://example.com/${version}`, k0sSha256: SHA };
  return JSON.stringify({ version, downloadURLs: [file], ...more });
};

interface Leader {
  readonly events: readonly EventNote[];
  /**
   * Makes the leader reconcile once. Resolves with the number of milliseconds after which the leader wants to check
   * again. `seen` contains the objects in the cache of the leader's informer: by default, the stored objects.
   */
  follow(stop?: AbortSignal, seen?: readonly UpdateConfig[]): Promise<number>;
}

export function lead(more: Partial<UpdateParts> = {}): Leader {
  const events: EventNote[] = [];
  const follower = new UpdateFollower({
    client: world.api.client,
    writer: world.api.client,
    clock: world.clock,
    random: () => 0.5,
    log: silentLogger,
    events: { record: (_object, note) => void events.push(note) },
    metrics: createMetrics(),
    phaseOf: phaseOfPlan,
    targetProblems: () => [],
    allowInsecure: true,
    environment: {},
    userAgent: 'refit-test',
    clusterInfo: undefined,
    periodMs: 10 * MINUTE,
    probe: undefined,
    ...more,
  });
  const follow = async (stop = NEVER, seen?: readonly UpdateConfig[]): Promise<number> => {
    const items = seen ?? (await world.api.client.listAll(updateConfigs)).items;
    return (await follower.followAll(items, { abort: NEVER, stop })).requeueAfterMs ?? DAY;
  };
  return { events, follow };
}

export async function serve(script: Script): Promise<string> {
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return server.config.server;
}

export const offering = async (text: () => string): Promise<string> =>
  await serve((_, response) => response.end(text()));

export function follow(
  updateServer: string,
  more: Partial<UpdateConfig['spec']> = {},
  annotations = {},
): void {
  const metadata = {
    name: 'u',
    uid: 'uid-u',
    generation: 1,
    creationTimestamp: rfc3339(START),
    annotations,
  };
  world.api.put(updateConfigs, {
    metadata,
    spec: { updateServer, upgradeStrategy: ALWAYS, ...more },
  });
}

export const reported = (): ReturnType<typeof statusOf> =>
  statusOf(world.api.read(updateConfigs, 'u'));
export const planned = (): string | undefined => {
  const found = world.api.calls.includes(`create plans/${PLAN_NAME}`)
    ? world.api.read(plans, PLAN_NAME)
    : undefined;
  return found?.spec.commands[0]?.k0supdate?.version;
};

export const ask = (): void =>
  world.api.change(updateConfigs, 'u', (config) => ({
    ...config,
    metadata: {
      ...config.metadata,
      annotations: { ...config.metadata.annotations, [CHECK_ANNOTATION]: 'now' },
    },
  }));
