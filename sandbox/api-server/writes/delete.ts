/** Deletion: preconditions, finalizers, and the grace period of running pods. */
import { rfc3339 } from '../../../src/util/clock.ts';
import { isRecord } from '../../../src/util/json.ts';
import type { Cluster, Resource } from '../cluster.ts';
import { badRequest, cause, conflict, invalidOptions, notImplemented } from '../failure.ts';
import type { Kind } from '../kinds/kind.ts';
import { type ApiObject, Version } from '../store.ts';

/** The options of a DELETE or an eviction. */
export interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  /** Used only for pods. */
  readonly gracePeriodSeconds?: number;
  readonly dryRun?: boolean;
}

const POLICIES = ['Foreground', 'Background', 'Orphan'];

/** Reads the options from the body, or from the query if there is no body. */
export function readDeleteOptions(
  query: URLSearchParams,
  body: Record<string, unknown> | undefined,
): DeleteOptions {
  const given = body ?? Object.fromEntries(query);
  const {
    preconditions = {},
    propagationPolicy: policy = 'Background',
    gracePeriodSeconds: grace,
  } = given;
  if (
    !isRecord(preconditions) ||
    !Object.values(preconditions).every((value) => typeof value === 'string')
  ) {
    throw badRequest('each precondition must be a string');
  }
  if (typeof policy !== 'string' || !POLICIES.includes(policy)) {
    throw invalidOptions('DeleteOptions', [
      cause.notSupported('propagationPolicy', policy, POLICIES),
    ]);
  }
  if (policy !== 'Background')
    throw notImplemented(`propagationPolicy ${policy}, because it has no garbage collection`);
  const dryRun =
    query.get('dryRun') || (Array.isArray(given['dryRun']) && given['dryRun'].length > 0);
  return {
    preconditions,
    ...(grace !== undefined && { gracePeriodSeconds: Number(grace) }),
    dryRun: Boolean(dryRun),
  };
}

/** Deletes the object. Returns it if finalizers or a grace period keep it; undefined if it is removed. */
export function deleteObject(
  cluster: Cluster,
  { kind, collection }: Resource,
  old: Version,
  options: DeleteOptions,
): Version | undefined {
  checkPreconditions(kind, old, options);
  const { dryRun = false } = options;
  const {
    deletionTimestamp,
    deletionGracePeriodSeconds: running = 0,
    finalizers = [],
  } = old.object.metadata;
  const grace = gracePeriod(kind, old.object, options.gracePeriodSeconds);
  if (finalizers.length === 0 && kind.beginDeletion === undefined && grace === undefined) {
    if (!dryRun) collection.remove(old);
    return undefined;
  }
  if (deletionTimestamp !== undefined && (grace ?? 0) >= running) return old;
  const object = structuredClone(old.object);
  const { metadata } = object;
  metadata.deletionTimestamp = rfc3339(cluster.clock.now() + (grace ?? 0) * 1000);
  if (kind.beginDeletion) kind.beginDeletion(object, metadata.deletionTimestamp);
  else {
    metadata.deletionGracePeriodSeconds = grace ?? 0;
    if (metadata.generation !== undefined && deletionTimestamp === undefined)
      metadata.generation += 1;
  }
  if (dryRun) return new Version(old.key, old.revision, object);
  const marked = collection.put(old.key, object);
  if (grace === 0 && finalizers.length === 0) collection.remove(marked);
  return marked;
}

function checkPreconditions(
  kind: Kind,
  { object: { metadata } }: Version,
  { preconditions = {} }: DeleteOptions,
): void {
  // In these two refusals the server writes the kind. In all other refusals it writes the resource.
  const named = { ...kind, plural: kind.kind };
  const { uid = metadata.uid, resourceVersion = metadata.resourceVersion } = preconditions;
  if (uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid})`;
    throw conflict(
      named,
      metadata.name,
      `${why}. The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record`;
    throw conflict(
      named,
      metadata.name,
      `${why} (${metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

/** Returns the grace period of a pod in seconds: 0 if the pod has no node or has ended. Undefined for all other kinds. */
function gracePeriod(kind: Kind, object: ApiObject, asked: number | undefined): number | undefined {
  if (kind.kind !== 'Pod') return undefined;
  const spec = object['spec'] as { nodeName?: string; terminationGracePeriodSeconds?: number };
  const { phase = '' } = object['status'] as { phase?: string };
  if (spec.nodeName === undefined || phase === 'Succeeded' || phase === 'Failed') return 0;
  const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 0;
  return seconds < 0 ? 1 : seconds;
}

/** The answer to a DELETE that removed the object at once. */
export function deletedStatus(
  { group, plural }: Kind,
  { object: { metadata } }: Version,
): Record<string, unknown> {
  const details = {
    name: metadata.name,
    ...(group !== '' && { group }),
    kind: plural,
    uid: metadata.uid,
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}
