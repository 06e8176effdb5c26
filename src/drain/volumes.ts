/** Waits until the volumes of the evicted pods are detached from a drained node. */
import type { KubeClient } from '../kube/client.ts';
import { keyAt, type Pod, persistentVolumes, volumeAttachments } from '../kube/resources.ts';
import { ifFound, isMissingRight } from '../kube/status-error.ts';
import { rfc3339, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { sparingly } from '../util/log.ts';
import { counted, listed } from '../util/phrases.ts';
import type { Tools } from '../util/tools.ts';
import { isFinished } from './pods.ts';

/**
 * The number of milliseconds between two requests for the attached volumes. Refit requests them repeatedly, because it
 * does not watch them.
 */
const AGAIN_MS = 2_000;

/** `pods` are the pods of the node. */
export type VolumesAsked = readonly [node: string, pods: readonly Pod[], abort: AbortSignal];

/**
 * Returns a function that lists the volumes that are attached to a node, but that no pod on the node uses any more, as
 * `namespace/claim` in alphabetical order. Each PersistentVolume is requested once. A volume without a PersistentVolume
 * is not listed, because it is unknown to which pod it belongs.
 */
export function leftVolumesOf(client: KubeClient) {
  const claims = new Map<string, string>();
  const claimOf = async (volume: string, abort: AbortSignal): Promise<string> => {
    const known = claims.get(volume);
    if (known !== undefined) return known;
    const found = await ifFound(client.get(persistentVolumes, volume, { abort }));
    const { name, namespace = '' } = found?.spec?.claimRef ?? {};
    const claim = name === undefined ? volume : keyAt(name, namespace);
    claims.set(volume, claim);
    return claim;
  };
  return async (...[node, pods, abort]: VolumesAsked): Promise<string[]> => {
    const { items } = await client.listAll(volumeAttachments, { resourceVersion: '0', abort });
    const attached = items.flatMap(({ spec: { nodeName, source } }) =>
      nodeName === node ? (source.persistentVolumeName ?? []) : [],
    );
    const used = new Set(pods.filter((pod) => !isFinished(pod)).flatMap(claimsOf));
    const found = await Promise.all(attached.map(async (volume) => await claimOf(volume, abort)));
    return found.filter((claim) => !used.has(claim)).toSorted();
  };
}

/** Returns the claims that the pod uses, as `namespace/name`. */
function claimsOf({ metadata: { name, namespace = '' }, spec }: Pod): string[] {
  return (spec?.volumes ?? []).flatMap((volume) => {
    const { persistentVolumeClaim: claim, ephemeral } = volume;
    if (claim !== undefined) return keyAt(claim.claimName, namespace);
    // The controller of ephemeral volumes names the claim after the pod and the volume.
    return ephemeral === undefined ? [] : keyAt(`${name}-${volume.name}`, namespace);
  });
}

/** Returns a clause such as `waiting for 2 volumes to detach: default/a, default/b`. */
export function describeVolumes(claims: readonly string[]): string {
  return `waiting for ${counted(claims.length, 'volume')} to detach: ${listed(claims)}`;
}

/** Returns a clause that says why the volumes are unknown, and which file grants a right that is missing. */
export function describeUnknownVolumes(error: unknown): string {
  const hint = isMissingRight(error) ? '; `refit install rights volumes` prints this right' : '';
  return `the volumes that are attached cannot be listed: ${messageOf(error)}${hint}`;
}

export interface VolumeParts extends Tools {
  readonly client: KubeClient;
  readonly abort: AbortSignal;
  readonly pods: () => readonly Pod[];
  /** This function is called with a clause that says what the drain waits for. */
  readonly onWait: (detaching: string) => void;
}

/**
 * Resolves once the volumes are detached, or after `timeoutMs`. While the volumes cannot be listed, it waits as well.
 * Rejects only with the reason of `abort`.
 */
export async function waitForDetach(
  node: string,
  timeoutMs: number,
  { client, clock, log, abort, pods, onWait }: VolumeParts,
): Promise<void> {
  const leftVolumes = leftVolumesOf(client);
  const end = clock.monotonic() + timeoutMs;
  const until = rfc3339(clock.now() + timeoutMs);
  const shouldLog = sparingly(clock);
  for (;;) {
    const waiting = await leftVolumes(node, pods(), abort).then(
      (claims) => (claims.length === 0 ? undefined : describeVolumes(claims)),
      describeUnknownVolumes,
    );
    abort.throwIfAborted();
    if (waiting === undefined) return;
    const leftMs = end - clock.monotonic();
    if (leftMs <= 0) {
      log.warn('the drain goes on although volumes may be attached', { reason: waiting });
      return;
    }
    if (shouldLog(waiting)) log.info('draining', { reason: waiting });
    onWait(`${waiting} (the drain goes on at ${until} at the latest)`);
    await sleep(clock, Math.min(AGAIN_MS, leftMs), abort);
  }
}
