/**
 * Applies the objects of manifests to a cluster, and removes them. Neither operation changes objects that Refit did not
 * install.
 */
import type { Reading } from '../kube/client.ts';
import * as kube from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import { sleep, systemClock } from '../util/clock.ts';
import { RefitError } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';

/**
 * Deleting an object of these kinds also deletes other objects. For example, deleting a definition deletes all objects
 * of the defined kind.
 */
const HOLDERS = ['Namespace', 'CustomResourceDefinition'];

const LABEL = 'app.kubernetes.io/managed-by';
const OWNER = 'refit';
/**
 * Seconds to wait. The API server may take minutes to delete a definition that was just created.
 */
const GONE_WITHIN_S = 300;

export interface ObjectsRun extends Reading {
  readonly write: (text: string) => void;
  /** If set, nothing is stored. With `server` the API server checks what it can; with `client` no write is sent. */
  readonly dryRun?: 'server' | 'client' | undefined;
}

/**
 * Applies the objects, and prints one line for each object, as kubectl does. If an object that Refit did not install
 * prevents the installation, changes nothing and rejects with REFIT_INSTALL.
 */
export async function applyObjects(
  objects: readonly kube.KubeObject[],
  run: ObjectsRun,
): Promise<void> {
  const foreign: kube.KubeObject[] = [];
  for (const object of objects) if (await isInTheWay(object, run)) foreign.push(object);
  if (foreign.length > 0) {
    const commands = deleteCommands(foreign).join(' && ');
    const hint = `stop the controller that uses these objects, and delete them in the same way as you installed them, for example with \`${commands}\`; then run this command again`;
    const titles = foreign.map(titleOf).join(', ');
    throw new RefitError(
      'REFIT_INSTALL',
      `these objects exist already, and refit install did not create them: ${titles}`,
      { hint },
    );
  }
  for (const object of objects) {
    const work = run.dryRun === undefined ? applyOne(object, run) : tryOne(object, objects, run);
    run.write(`${titleOf(object)} ${await work}\n`);
  }
}

/** Returns what would be done with the object. Stores nothing, and does not wait. */
async function tryOne(
  object: kube.KubeObject,
  objects: readonly kube.KubeObject[],
  run: ObjectsRun,
): Promise<string> {
  const { resource, address, found: before } = await lookUp(object, run);
  if (before?.metadata.deletionTimestamp !== undefined)
    return 'is being deleted: it would be created after that';
  if (before && !isOurs(before)) return 'would be left as it is: it existed before';
  if (run.dryRun === 'client') return `${before ? 'applied' : 'created'} (dry run)`;
  const { name, namespace } = object.metadata;
  const space = objects.find(
    (each) => each.kind === 'Namespace' && each.metadata.name === namespace,
  );
  // A dry run creates no namespace, and the API server refuses objects in a namespace that does not exist.
  if (space && !(await lookUp(space, run)).found)
    return `created (dry run, not checked: namespace ${namespace} does not exist yet)`;
  const options = { ...address, ...APPLY, dryRun: true };
  const after = await run.client.patch(resource, name, owned(object), options);
  if (!before) return 'created (server dry run)';
  return `${changeFrom(before, after)} (server dry run)`;
}

/** Returns a word that says whether the object was changed. */
function changeFrom(before: kube.KubeObject, after: kube.KubeObject): 'unchanged' | 'configured' {
  return sameJson(contentOf(before), contentOf(after)) ? 'unchanged' : 'configured';
}

/**
 * Returns the object without managedFields and resourceVersion. API servers may change them although nothing else
 * changes: a dry run changes the times in managedFields, and v1.30 stores some definitions anew each time they are applied.
 */
function contentOf({ metadata, ...rest }: kube.KubeObject): object {
  const {
    managedFields: _managers,
    resourceVersion: _version,
    ...kept
  } = metadata as typeof metadata & { managedFields?: unknown };
  return { ...rest, metadata: kept };
}

/** Returns kubectl commands that delete the objects, one for each namespace. */
export function deleteCommands(objects: readonly kube.KubeObject[]): string[] {
  const byNamespace = Map.groupBy(objects, ({ metadata }) => metadata.namespace);
  return [...byNamespace].map(([namespace, all]) => {
    const names = all.map(({ kind = '', metadata }) => `${kind.toLowerCase()}/${metadata.name}`);
    return `kubectl ${namespace === undefined ? '' : `-n ${namespace} `}delete ${names.join(' ')}`;
  });
}

/**
 * Returns true if an existing object that Refit did not install prevents the installation. This can be a Deployment,
 * such as the Deployment of k0s, or a binding that lacks the ServiceAccount of Refit.
 */
async function isInTheWay(object: Wanted, run: ObjectsRun): Promise<boolean> {
  const accounts = object.subjects?.filter(({ kind }) => kind === 'ServiceAccount') ?? [];
  if (object.kind !== 'Deployment' && accounts.length === 0) return false;
  const { found } = await lookUp(object, run);
  if (!found || isOurs(found)) return false;
  return (
    object.kind === 'Deployment' ||
    !accounts.every((ours) => found.subjects?.some((it) => sameJson(it, ours)))
  );
}

/** Waits until the object is not being deleted, because an object that is applied during its deletion would be deleted as well. */
async function whenGone(object: kube.KubeObject, run: ObjectsRun): Promise<LookUp> {
  for (let second = 0; second < GONE_WITHIN_S; second++) {
    const now = await lookUp(object, run);
    if (now.found?.metadata.deletionTimestamp === undefined) return now;
    if (second === 0)
      run.write(`${titleOf(object)} is being deleted: waiting up to ${GONE_WITHIN_S / 60} min\n`);
    await sleep(systemClock, 1_000, run.abort);
  }
  const hint = 'its finalizers or conditions say what keeps it; then run this again';
  throw new RefitError('REFIT_INSTALL', `${titleOf(object)} is still being deleted`, { hint });
}

const APPLY = { type: 'apply', fieldManager: 'refit-install', force: true } as const;

/** Returns the object with the label that marks objects installed by Refit. */
function owned(object: kube.KubeObject): kube.KubeObject {
  const { labels } = object.metadata;
  return { ...object, metadata: { ...object.metadata, labels: { ...labels, [LABEL]: OWNER } } };
}

async function applyOne(object: kube.KubeObject, run: ObjectsRun): Promise<string> {
  const { resource, address, found: before } = await whenGone(object, run);
  const { name } = object.metadata;
  if (before && !isOurs(before)) return 'left as it is: it existed before';
  const after = await run.client.patch(resource, name, owned(object), { ...address, ...APPLY });
  if (!before) return 'created';
  return changeFrom(before, after);
}

type Objects = readonly kube.KubeObject[];

/**
 * Removes the objects, except those that another installed component needs. Without `withPlans` it
 * also keeps definitions and namespaces.
 */
export async function removeObjects(
  objects: Objects,
  run: ObjectsRun,
  { others, withPlans }: { readonly others: readonly Objects[]; readonly withPlans: boolean },
): Promise<void> {
  const needed = await neededOf(others, run);
  for (const object of objects.toReversed()) {
    const user = needed.get(titleOf(object));
    const holds = !withPlans && HOLDERS.includes(object.kind ?? '');
    const why = holds
      ? 'deleting it would delete everything in it; pass --delete-plans to delete it'
      : undefined;
    run.write(
      `${titleOf(object)} ${await removeOne(object, user === undefined ? why : `${user} needs it`, run)}\n`,
    );
  }
}

/**
 * Returns a map from the title of each object to the title of the Deployment that needs it. A Deployment with the same
 * name that Refit did not install does not count.
 */
async function neededOf(others: readonly Objects[], run: ObjectsRun): Promise<Map<string, string>> {
  const needed = new Map<string, string>();
  for (const objects of others) {
    const deployment: Wanted | undefined = objects.find(({ kind }) => kind === 'Deployment');
    if (!deployment) continue;
    const { found } = await lookUp(deployment, run);
    if (!sameJson(found?.spec?.selector, deployment.spec?.selector)) continue;
    for (const object of objects) needed.set(titleOf(object), titleOf(deployment));
  }
  return needed;
}

/** The fields of installed objects that this module reads. */
interface Wanted extends kube.KubeObject {
  readonly spec?: { readonly selector?: unknown };
  readonly subjects?: readonly { readonly kind: string }[];
}

/**
 * Removes an object that Refit installed, and returns a text that describes what was done. `keep` is the reason to keep
 * the object; undefined if the object must be removed.
 */
async function removeOne(
  object: kube.KubeObject,
  keep: string | undefined,
  run: ObjectsRun,
): Promise<string> {
  const { resource, address, found } = await lookUp(object, run);
  if (!found) return 'not found';
  if (!isOurs(found)) return 'left as it is: refit install did not make it';
  if (keep !== undefined) return `left as it is: ${keep}`;
  await ifFound(
    run.client.delete(resource, object.metadata.name, { ...address, uid: found.metadata.uid }),
  );
  return 'deleted';
}

function isOurs({ metadata }: kube.KubeObject): boolean {
  return metadata.labels?.[LABEL] === OWNER;
}

/** The resource and the address of an object in the API, and the object itself if it exists. */
interface LookUp {
  readonly resource: kube.Resource;
  readonly address: { readonly namespace: string | undefined; readonly abort: AbortSignal };
  readonly found: Wanted | undefined;
}

async function lookUp(
  { apiVersion = '', kind = '', metadata }: kube.KubeObject,
  { client, abort }: ObjectsRun,
): Promise<LookUp> {
  const { name, namespace } = metadata;
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies');
  const place = namespace === undefined ? kube.clusterScoped : kube.namespaced;
  const resource = place(apiVersion, kind, plural);
  const address = { namespace, abort };
  const found: Wanted | undefined = await ifFound(client.get(resource, name, address));
  return { resource, address, found };
}

function titleOf(object: kube.KubeObject): string {
  return `${object.kind?.toLowerCase()} ${kube.keyOf(object)}`;
}
