/** Tells once, with an Event, that a newer release exists. For clusters without an UpdateConfig, and only if asked for. */
import type { KubeClient } from '../kube/client.ts';
import { events, namespaces } from '../kube/resources.ts';
import { isAlreadyExists } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import type { Tools } from '../util/tools.ts';
import { compareVersions, parseVersion } from '../util/version.ts';
import type { ChannelMemory, Current } from './channel/follow-channel.ts';

export interface ProbeOptions {
  /** Such as `https://updates.k0sproject.io`. */
  readonly server: string;
  readonly intervalMs: number;
}

interface ProbeParts extends Pick<Tools, 'clock' | 'log'> {
  readonly writer: KubeClient;
}

export class NewVersionProbe {
  readonly #parts: ProbeParts;
  readonly #options: ProbeOptions;
  readonly #channels: ChannelMemory;
  #last: number | undefined;
  /** The server forgets Events after an hour. */
  readonly #reported = new Set<string>();

  constructor(parts: ProbeParts, options: ProbeOptions, channels: ChannelMemory) {
    this.#parts = parts;
    this.#options = options;
    this.#channels = channels;
  }

  /** Resolves with the milliseconds until the next question. */
  async probe(current: Current, abort: AbortSignal): Promise<number> {
    const { clock, log } = this.#parts;
    const { server, intervalMs } = this.#options;
    const age = clock.monotonic() - (this.#last ?? Number.NEGATIVE_INFINITY);
    if (age < intervalMs) return intervalMs - age;
    this.#last = clock.monotonic();
    try {
      const { version } = await this.#channels.askLatest(server, current, abort);
      const [offered, running] = [parseVersion(version), parseVersion(current.version)];
      if (offered && running && compareVersions(offered, running) > 0 && !this.#reported.has(version)) {
        await this.#report(version, abort);
        this.#reported.add(version);
      }
    } catch (error) {
      abort.throwIfAborted();
      log.warn('cannot ask for new versions', { reason: messageOf(error) });
    }
    return intervalMs;
  }

  /** As k0s writes it (the API server wants the namespace twice), but its name is the same for every leader. */
  async #report(version: string, abort: AbortSignal): Promise<void> {
    const { writer, clock } = this.#parts;
    const namespace = 'kube-system';
    const { metadata } = await writer.get(namespaces, namespace, { abort });
    const at = rfc3339(clock.now());
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `k0s-update-probe-${version.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')}`, namespace },
      involvedObject: defined({ apiVersion: 'v1', kind: 'Namespace', name: namespace, namespace, uid: metadata.uid }),
      type: 'Normal' as const,
      reason: 'NewVersionAvailable',
      message: `New version available: ${version}`,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
      source: { component: 'k0s' },
    };
    try {
      await writer.create(events, event, { namespace, abort });
    } catch (error) {
      // Told before.
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
