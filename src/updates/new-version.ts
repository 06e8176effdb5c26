/** Tells once, with an Event, that a newer release exists. For clusters without an UpdateConfig, and only if asked for. */
import type { KubeClient } from '../kube/client.ts';
import { events, namespaces } from '../kube/resources.ts';
import { ifNew } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import type { Tools } from '../util/tools.ts';
import { compareVersionTexts } from '../util/version.ts';
import type { Channels, Current } from './channel/follow-channel.ts';
import { withScheme } from './config/read-config.ts';

export interface ProbeOptions {
  /** Such as `https://updates.k0sproject.io`, or without the scheme. */
  readonly server: string;
  readonly intervalMs: number;
}

interface ProbeParts extends Pick<Tools, 'clock' | 'log'> {
  readonly writer: KubeClient;
}

/** Each question resolves with the milliseconds until the next one. */
export function newVersionProbe(
  parts: ProbeParts,
  { server, intervalMs }: ProbeOptions,
  channels: Channels,
) {
  const { clock, log } = parts;
  let last = Number.NEGATIVE_INFINITY;
  // The server forgets Events after an hour.
  const reported = new Set<string>();
  return async (current: Current, abort: AbortSignal): Promise<number> => {
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

/** As k0s writes it (the API server wants the namespace twice), but its name is the same for every leader. */
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
