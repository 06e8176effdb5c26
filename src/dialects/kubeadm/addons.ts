/** Addons: manifests that are applied after all hosts, by server-side apply, and pruned by Refit's own record. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { documentsOf } from '../../api/read-object.ts';
import type { KubeClient } from '../../kube/client.ts';
import * as kube from '../../kube/resources.ts';
import { ifFound, StatusError } from '../../kube/status-error.ts';
import { addonCheck, untilRight } from '../../kubeadm/verify.ts';
import { readBounded } from '../../util/bounded-file.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { parseJson, sameJson } from '../../util/json.ts';

export interface Addon {
  readonly name: string;
  readonly objects: readonly kube.KubeObject[];
}

export interface AddonPlan extends Addon, Pick<AddonTools, 'force'> {
  /** What is to happen, and to which object. */
  readonly changes: readonly string[];
  /** Why it cannot be applied. */
  readonly problems: readonly string[];
  /** Applied by an earlier run, and not in the files any more. */
  readonly gone: readonly kube.KubeObject[];
}

export interface AddonTools {
  readonly client: KubeClient;
  /** To apply, it must write only while the lock is held. */
  readonly writer: KubeClient;
  /** Whether to take over fields that others manage. */
  readonly force: boolean | undefined;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** Has a key for each addon: the objects that were applied. */
const RECORD = 'refit-addons';
const namespace = 'kube-system';
const LABEL = 'upgrade.refit.dev/addon';
const FIELD_MANAGER = 'refit-kubeadm-addons';
/** Milliseconds until everything has rolled out. */
const WITHIN_MS = 300_000;

/** @throws RefitError REFIT_FILE with file, field, found and expected */
export async function readAddon({ name, path }: { readonly name: string; readonly path: string }): Promise<Addon> {
  const fail = (file: string, why: string): never => {
    throw new RefitError('REFIT_FILE', `addon ${name}: ${file}: ${why}`);
  };
  const unread = (error: unknown): never => fail(path, `cannot be read: ${messageOf(error)}`);
  const isFolder = (await stat(path).catch(unread)).isDirectory();
  const inside = isFolder ? (await readdir(path)).toSorted().filter((file) => /\.(ya?ml|json)$/.test(file)) : [];
  const objects: kube.KubeObject[] = [];
  for (const file of isFolder ? inside.map((each) => join(path, each)) : [path]) {
    const text = await readBounded(file).catch(unread);
    if (text.includes('{{')) fail(file, 'found a template ({{ }}), expected plain objects: render it first');
    for (const [index, value] of documentsOf(text, (why) => fail(file, why)).entries()) {
      if (value === null) continue;
      const object = value as kube.KubeObject;
      const { apiVersion, kind, metadata } = object;
      for (const [field, found] of Object.entries({ apiVersion, kind, 'metadata.name': metadata?.name }))
        if (typeof found !== 'string') fail(file, `document ${index + 1}: ${field}: found ${found}, expected a text`);
      objects.push({ ...object, metadata: { ...metadata, labels: { ...metadata.labels, [LABEL]: name } } });
    }
  }
  if (objects.length === 0) fail(path, 'found no object, expected YAML or JSON of Kubernetes');
  return { name, objects };
}

/** Changes nothing: the API server tries each object. */
export async function planAddon(tools: AddonTools, { name, objects }: Addon): Promise<AddonPlan> {
  const { client, force, abort } = tools;
  const [changes, problems]: [string[], string[]] = [[], []];
  for (const object of objects)
    try {
      const change = await changeOf(tools, object);
      if (change !== undefined) changes.push(`${change}: ${titleOf(object)}`);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      problems.push(`${titleOf(object)}: ${error.message.replaceAll(/\s+/g, ' ')}`);
    }
  const record = await ifFound(client.get(kube.configMaps, RECORD, { namespace, abort }));
  const known = (parseJson(record?.data?.[name]) ?? []) as kube.KubeObject[];
  const titles = new Set(objects.map(titleOf));
  return { name, objects, force, changes, problems, gone: known.filter((object) => !titles.has(titleOf(object))) };
}

export function titleOf({ kind, metadata }: kube.KubeObject): string {
  return `${kind} ${kube.keyOf({ metadata })}`;
}

/** What it holds would go with it. */
export function isKept({ kind = '' }: kube.KubeObject): boolean {
  return /^(Namespace|CustomResourceDefinition|PersistentVolume(Claim)?)$/.test(kind);
}

async function changeOf(tools: AddonTools, object: kube.KubeObject): Promise<string | undefined> {
  const found = await locate(tools, object);
  // Its kind or its namespace may come with another object of the addon.
  const next = found && (await put(tools, found, object, { dryRun: true }));
  if (!next || !found.live) return 'created';
  if (!sameJson(essenceOf(found.live), essenceOf(next))) return 'changed';
  const { kind = '' } = object;
  const isWorkload = /^(Deployment|DaemonSet|StatefulSet)$/.test(kind);
  return isWorkload && addonCheck(found.live, kind).cure !== undefined ? 'not rolled out' : undefined;
}

/** What a write changes by itself counts for nothing. */
function essenceOf({ metadata, ...rest }: kube.KubeObject): object {
  return { ...rest, metadata: { ...metadata, managedFields: 0, resourceVersion: 0, generation: 0 } };
}

type Served = Readonly<Record<'name' | 'kind', string>> & { readonly namespaced: boolean };
type Located = NonNullable<Awaited<ReturnType<typeof locate>>>;

/** Undefined if the API server does not serve its kind now. */
async function locate({ client, abort }: AddonTools, { apiVersion = '', kind, metadata }: kube.KubeObject) {
  const { status, body } = await client.raw(`${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`, { abort });
  const { resources = [] } = status === 200 ? (JSON.parse(body) as { resources?: Served[] }) : {};
  const served = resources.find((each) => each.kind === kind && !each.name.includes('/'));
  if (!served) return undefined;
  const resource = (served.namespaced ? kube.namespaced : kube.clusterScoped)(apiVersion, served.kind, served.name);
  const options = { namespace: served.namespaced ? (metadata.namespace ?? 'default') : undefined, abort };
  return { resource, options, live: await ifFound(client.get(resource, metadata.name, options)) };
}

/** Undefined if its namespace is not there. */
async function put(
  { writer, force }: AddonTools,
  { resource, options }: Located,
  object: kube.KubeObject,
  how: { readonly dryRun?: true } = {},
): Promise<kube.KubeObject | undefined> {
  const whole = { ...options, ...how, type: 'apply', fieldManager: FIELD_MANAGER, force } as const;
  return await ifFound(writer.patch(resource, object.metadata.name, object, whole));
}

/** Resolves with why it stopped, or undefined once everything has rolled out. One that has a problem is not touched. */
export async function applyAddon(tools: AddonTools, addon: Addon): Promise<string | undefined> {
  const { problems, gone } = await planAddon(tools, addon);
  if (problems.length > 0) return problems.join('; ');
  // First, so that the next run knows what this one applied, however it ended.
  await record(tools, addon.name, [...addon.objects, ...gone]);
  const turn = async (): Promise<readonly string[]> => {
    for (const object of addon.objects) {
      const found = await locate(tools, object);
      if (found) await put(tools, found, object);
    }
    const next = await planAddon(tools, addon);
    return [...next.problems, ...next.changes];
  };
  const left = await untilRight(turn, (all) => all.length === 0, { ...tools, withinMs: WITHIN_MS });
  if (left.length > 0) return `after 5 min: ${left.join('; ')}`;
  for (const object of gone) {
    const { live, resource, options } = (isKept(object) ? undefined : await locate(tools, object)) ?? {};
    // Somebody may have made a new one of that name.
    if (!resource || live?.metadata.labels?.[LABEL] !== addon.name) continue;
    const uid = live.metadata.uid ?? '';
    await ifFound(
      tools.writer.delete(resource, object.metadata.name, { ...options, uid, propagationPolicy: 'Background' }),
    );
  }
  await record(tools, addon.name, addon.objects);
  return undefined;
}

/** Each addon manages its own key. */
async function record(
  { writer, abort }: AddonTools,
  addon: string,
  objects: readonly kube.KubeObject[],
): Promise<void> {
  const known = objects.map(({ apiVersion, kind, metadata: { name, namespace: place } }) => {
    return { apiVersion, kind, metadata: { name, namespace: place } };
  });
  const data = { [addon]: JSON.stringify(known) };
  const options = { namespace, type: 'apply', force: true, fieldManager: `${FIELD_MANAGER}-${addon}`, abort } as const;
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: RECORD }, data };
  await writer.patch(kube.configMaps, RECORD, map, options);
}
