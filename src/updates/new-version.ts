/**
 * Reports each newer release once, with an Event. It is for clusters without an UpdateConfig, and runs only if the user asks
 * for it.
 */
import type { KubeClient } from '../kube/client.ts';
import { events, namespaces } from '../kube/resources.ts';
import { ifNew } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import type { BasicTools } from '../util/tools.ts';
import { compareVersionTexts } from '../util/version.ts';
import type { Channels, Current } from './channel/follow-channel.ts';
import { withScheme } from './config/read-config.ts';

export interface ProbeOptions {
  /** The server, such as `https://updates.k0sproject.io`. The scheme may be missing. */
  readonly server: string;
  readonly intervalMs: number;
}

interface ProbeParts extends BasicTools {
  readonly writer: KubeClient;
}

/** A function that asks the server for its newest release if a request is due. Resolves with the milliseconds until the next request. */
export type NewVersionProbe = (current: Current, abort: AbortSignal) => Promise<number>;

export function newVersionProbe(
  parts: ProbeParts,
  { server, intervalMs }: ProbeOptions,
  channels: Channels,
): NewVersionProbe {
  const { clock, log } = parts;
  let last = Number.NEGATIVE_INFINITY;
  // Events cannot show what was reported, because the API server deletes them after an hour.
  const reported = new Set<string>();
  return async (current, abort) => {
    const age = clock.monotonic() - last;
    if (age < intervalMs) return intervalMs - age;
    last = clock.monotonic();
    try {
      const { version } = await channels.askLatest(withScheme(server), current, abort);
      if (compareVersionTexts(version, current.version) > 0 && !reported.has(version)) {
        await report(version, parts, abort);
        reported.add(version);
      }
    } catch (error) {
      abort.throwIfAborted();
      log.warn('cannot ask for new versions', { reason: messageOf(error) });
    }
    return intervalMs;
  };
}

/**
 * Writes the same Event as k0s. The API server requires the namespace twice. The name is the same
 * for every leader, so there is only one Event.
 */
async function report(
  version: string,
  { writer, clock }: ProbeParts,
  abort: AbortSignal,
): Promise<void> {
  const namespace = 'kube-system';
  const { metadata } = await writer.get(namespaces, namespace, { abort });
  const at = rfc3339(clock.now());
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: `k0s-update-probe-${version.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')}`,
      namespace,
    },
    involvedObject: defined({
      apiVersion: 'v1',
      kind: 'Namespace',
      name: namespace,
      namespace,
      uid: metadata.uid,
    }),
    type: 'Normal' as const,
    reason: 'NewVersionAvailable',
    message: `New version available: ${version}`,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    source: { component: 'k0s' },
  };
  await ifNew(writer.create(events, event, { namespace, abort }));
}
