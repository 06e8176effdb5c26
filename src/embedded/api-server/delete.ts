/** Owns deletion: preconditions, finalizers, and the time that running pods get to end. */
import { isRecord } from '../../util/json.ts';
import type { Cluster, Resource } from './cluster.ts';
import { badRequest, conflict, notImplemented } from './failure.ts';
import type { Kind } from './kind.ts';
import type { Target } from './request.ts';
import { type ApiObject, Version } from './store.ts';

export interface DeleteOptions {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly dryRun: boolean;
}

/** Reads options from the query and from a body, which wins. */
export function deleteOptions(query: URLSearchParams, body: unknown): DeleteOptions {
  if (body !== undefined && !isRecord(body)) throw badRequest('the body of a DELETE must be DeleteOptions');
  const given = body ?? {};
  const preconditions = isRecord(given['preconditions']) ? given['preconditions'] : {};
  const policy = given['propagationPolicy'] ?? query.get('propagationPolicy') ?? 'Background';
  if (policy !== 'Background')
    throw notImplemented(`propagationPolicy ${JSON.stringify(policy)}: it has no garbage collector`);
  const grace = given['gracePeriodSeconds'] ?? query.get('gracePeriodSeconds') ?? undefined;
  const dryRun = Array.isArray(given['dryRun']) ? given['dryRun'].length > 0 : Boolean(query.get('dryRun'));
  return {
    uid: text(preconditions['uid']),
    resourceVersion: text(preconditions['resourceVersion']),
    gracePeriodSeconds: grace === undefined ? undefined : Number(grace),
    dryRun,
  };
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** What is left of the object: undefined where it is gone, its last state where something still holds it. */
export function deleteObject(
  cluster: Cluster,
  resource: Resource,
  old: Version,
  options: DeleteOptions,
): Version | undefined {
  const { kind, collection } = resource;
  checkPreconditions(kind, old, options);
  const grace = gracePeriod(kind, old.object, options.gracePeriodSeconds);
  const { deletionTimestamp, deletionGracePeriodSeconds: running = 0, finalizers = [] } = old.object.metadata;
  const held = finalizers.length > 0 || grace > 0 || kind.beginDeletion !== undefined;
  if (!held) {
    if (!options.dryRun) collection.remove(old);
    return undefined;
  }
  if (deletionTimestamp !== undefined && (grace >= running || kind.beginDeletion)) return old;
  const object = structuredClone(old.object);
  object.metadata.deletionTimestamp = timestampIn(cluster, grace);
  object.metadata.deletionGracePeriodSeconds = grace;
  if (object.metadata.generation !== undefined) object.metadata.generation += 1;
  kind.beginDeletion?.(object);
  return options.dryRun ? new Version(old.key, old.revision, object) : collection.put(old.key, object);
}

function checkPreconditions(kind: Kind, { object }: Version, { uid, resourceVersion }: DeleteOptions): void {
  const { metadata } = object;
  // In these two refusals the server names the kind where it names the resource everywhere else.
  const named = { ...kind, plural: kind.kind };
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid})`;
    throw conflict(named, metadata.name, `${why}. The object might have been deleted and then recreated`);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record`;
    throw conflict(named, metadata.name, `${why} (${metadata.resourceVersion}). The object might have been modified`);
  }
}

/** Seconds that the object gets to end. Only a pod that runs on a node gets any: a kubelet has to say when it is gone. */
function gracePeriod(kind: Kind, object: ApiObject, asked: number | undefined): number {
  if (kind.kind !== 'Pod') return 0;
  const spec = object['spec'] as { nodeName?: string; terminationGracePeriodSeconds?: number };
  const { phase = '' } = object['status'] as { phase?: string };
  if (spec.nodeName === undefined || ['Succeeded', 'Failed'].includes(phase)) return 0;
  const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 0;
  return seconds < 0 ? 1 : seconds;
}

function timestampIn(cluster: Cluster, seconds: number): string {
  return new Date(Date.parse(cluster.timestamp()) + seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** The body of a DELETE that removed the object at once. */
export function deletedStatus(kind: Kind, { object }: Version, target: Target): Record<string, unknown> {
  const details = {
    name: target.name,
    ...(kind.group === '' ? {} : { group: kind.group }),
    kind: kind.plural,
    uid: object.metadata.uid,
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}
