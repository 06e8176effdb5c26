/** The parts that connect a double with a cluster: its user, the record of its writes, the clock, and random choices. */
import { randomInt } from 'node:crypto';
import type { ClusterConfig } from '../../../src/kube/config/cluster-config.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { askerOf } from '../../../src/kube/transport/readyz.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { type Logger, silentLogger } from '../../../src/util/log.ts';
import type { Surroundings } from './k0s-process.ts';
import { type Author, type Recorder, recorded } from './runtime/recorder.ts';
import type { Times } from './times.ts';

export interface SurroundingsOptions {
  /** The configuration with the credentials of the process's user. */
  readonly config: ClusterConfig;
  readonly author: Author;
  readonly recorder: Recorder;
  readonly times: Times;
  /** The port on which the controllers' API servers listen at their own addresses. */
  readonly apiPort: number;
  /** Chooses the next target. If absent, the target is chosen at random. */
  readonly pick?: (names: readonly string[]) => string;
  readonly log?: Logger;
}

/** Returns the parts for one double. All its processes share the connections. Close them when the double has stopped. */
export function surroundingsFor(options: SurroundingsOptions): Surroundings & { close(): void } {
  const { config, author, recorder, times, apiPort, pick = pickAny, log = silentLogger } = options;
  const client = createClient(config, { userAgent: 'k0s/v0.0.0', fieldManager: 'k0s' });
  const ask = askerOf(config);
  return {
    connect: (abort) => recorded(client, author, recorder, abort),
    times,
    clock: systemClock,
    random: Math.random,
    log,
    pick,
    askReadyz: async (host) => await ask(host, { port: apiPort, deadlineMs: times.readyz }),
    close: () => client.close(),
  };
}

function pickAny(names: readonly string[]): string {
  return names[randomInt(names.length)] ?? '';
}
