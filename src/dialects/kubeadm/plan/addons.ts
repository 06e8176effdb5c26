/**
 * Reads and applies addons. An addon consists of manifests that Refit applies by server-side apply after all hosts are
 * upgraded. Objects that were removed from an addon stay in the cluster and are reported.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { KubeClient, Reading, RequestOptions } from '../../../kube/client.ts';
import { itemsOf } from '../../../kube/list-items.ts';
import * as kube from '../../../kube/resources.ts';
import { ifFound, isConflict, StatusError } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { readBounded } from '../../../util/bounded-file.ts';
import type { Clock } from '../../../util/clock.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { parseJson, sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { parseYaml } from '../../../util/yaml.ts';
import { absentOf, addonCheck, untilRight, type Workload } from '../host/verify.ts';

export interface Addon {
  readonly name: string;
  readonly objects: readonly kube.KubeObject[];
}

export interface AddonPlan extends Addon, Pick<AddonTools, 'force'> {
  readonly changes: readonly string[];
  readonly problems: readonly string[];
  /** Sentences about objects that an earlier run applied and that are no longer in any addon. */
  readonly notes: readonly string[];
}

export interface AddonTools extends Reading {
  /** The client that applies the addons. It must write only while the lock is held. */
  readonly writer: KubeClient;
  /** True if Refit is to take over fields that other field managers own. */
  readonly force: boolean | undefined;
  readonly dryRun?: true;
  readonly clock: Clock;
}

/** The name of the ConfigMap that records which objects were applied. It has a key for each addon. */
const RECORD = 'refit-addons';
const namespace = 'kube-system';
const FIELD_MANAGER = 'refit-kubeadm-addons';

/**
 * Reads the files of an addon. @throws RefitError REFIT_FILE with the file, the field, the found value and the expected
 * value
 */
export async function readAddon({
  name,
  path,
}: {
  readonly name: string;
  readonly path: string;
}): Promise<Addon> {
  const fail = (file: string, why: string): never => {
    throw new RefitError('REFIT_FILE', `addon ${name}: ${file}: ${why}`);
  };
  const unread = (error: unknown): never => fail(path, `cannot be read: ${messageOf(error)}`);
  const isFolder = (await stat(path).catch(unread)).isDirectory();
  const inside = isFolder
    ? (await readdir(path)).toSorted().filter((file) => /\.(ya?ml|json)$/.test(file))
    : [];
  const objects: kube.KubeObject[] = [];
  for (const file of isFolder ? inside.map((each) => join(path, each)) : [path]) {
    const text = await readBounded(file).catch(unread);
    const documents = parseYaml(text, (why) => fail(file, `is not YAML: ${why}`));
    const written = documents.flatMap((document, index) =>
      itemsOf(document).map(({ value, path: at, fault }) => ({
        value,
        fault,
        place: [`document ${index + 1}`, at].filter((part) => part !== undefined).join(': '),
      })),
    );
    for (const { value, place, fault } of written) {
      if (fault !== undefined) fail(file, `${place}: ${fault}`);
      if (value === null) continue;
      const object = value as kube.KubeObject;
      const { apiVersion, kind, metadata } = object;
      for (const [field, found] of Object.entries({
        apiVersion,
        kind,
        'metadata.name': metadata?.name,
      }))
        if (typeof found !== 'string')
          fail(file, `${place}: ${field}: found ${found}, expected a text`);
      const labels = { ...metadata.labels, 'upgrade.refit.dev/addon': name };
      objects.push({ ...object, metadata: { ...metadata, labels } });
    }
  }
  if (objects.length === 0) fail(path, 'found no object, expected YAML or JSON of Kubernetes');
  // Namespaces and CustomResourceDefinitions are applied first, because other objects need them.
  const first = objects.filter(({ kind = '' }) =>
    /^(Namespace|CustomResourceDefinition)$/.test(kind),
  );
  return { name, objects: [...new Set([...first, ...objects])] };
}

/**
 * Determines by dry runs what each addon would change. Changes nothing.
 * @throws RefitError REFIT_FILE if two addons contain the same object
 */
export async function planAddons(
  tools: AddonTools,
  addons: readonly Addon[],
): Promise<AddonPlan[]> {
  const files = new Map<string, string>();
  const locate = discovery(tools);
  for (const { name, objects } of addons)
    for (const object of objects) {
      const identity =
        (await locate(object))?.identity ?? `${object.apiVersion} ${titleOf(object)}`;
      const why = `${titleOf(object)} is in addon ${files.get(identity)} and again in addon ${name}`;
      if (files.has(identity)) throw new RefitError('REFIT_FILE', `${why}: leave it in one place`);
      files.set(identity, name);
    }
  const { client, force, abort } = tools;
  const map =
    addons.length > 0
      ? await ifFound(client.get(kube.configMaps, RECORD, { namespace, abort }))
      : undefined;
  const broken = [`configmaps ${RECORD} -n ${namespace} (it is broken)`];
  const plans = addons.map(async ({ name, objects }) => {
    const known =
      z.array(z.string()).safeParse(parseJson(ownMember(map?.data, name) ?? '[]')).data ?? broken;
    const left = known.filter((identity) => !files.has(identity));
    const notes = left.map(
      (each) =>
        `${name}: an earlier run applied an object that no file has now, and Refit does not delete it; to see it: kubectl get ${each}`,
    );
    return { name, objects, force, notes, ...(await tryOut(tools, { name, objects })) };
  });
  return await Promise.all(plans);
}

async function tryOut(
  tools: AddonTools,
  { objects }: Addon,
): Promise<Pick<AddonPlan, 'changes' | 'problems'>> {
  const changes: string[] = [];
  const problems: string[] = [];
  const locate = discovery(tools);
  for (const object of objects)
    try {
      const change = await changeOf(tools, object, await locate(object));
      if (change !== undefined) changes.push(`${change}: ${titleOf(object)}`);
    } catch (error) {
      // If the addon contains the CRD of this kind, the error is treated as a change, because the API server may accept
      // the object after the new CRD is applied.
      const isOurs = objects.some(({ metadata }) =>
        metadata.name.endsWith(`.${object.apiVersion?.split('/')[0]}`),
      );
      (isOurs && !isConflict(error) ? changes : problems).push(problemOf(object, error));
    }
  return { changes, problems };
}

function problemOf(object: kube.KubeObject, error: unknown): string {
  if (!(error instanceof StatusError)) throw error;
  const value = object.kind === 'Secret' ? /(, got|: Invalid value:).*/s : /$/;
  return `${titleOf(object)}: ${error.message.replace(value, '').replaceAll(/\s+/g, ' ')}`;
}

function titleOf({ kind, metadata }: kube.KubeObject): string {
  return `${kind} ${kube.keyOf({ metadata })}`;
}

async function changeOf(tools: AddonTools, object: kube.KubeObject, found: Located | undefined) {
  const { kind = '', metadata } = object;
  // If the kind or the namespace of the object is missing, another object of the addon may create it. So this object is
  // treated as new.
  const next = found && (await put({ ...tools, dryRun: true }, found, object));
  const live: Workload | undefined =
    found && (await ifFound(tools.client.get(found.resource, metadata.name, found.options)));
  if (!next || !live) return 'created';
  if (!sameJson(essenceOf(live), essenceOf(next))) return 'changed';
  const isWorkload = /^(Deployment|DaemonSet|StatefulSet)$/.test(kind);
  if (!isWorkload || live.spec?.updateStrategy?.type === 'OnDelete') return undefined;
  const { items } = kind === 'DaemonSet' ? await listNodes(tools.client) : { items: [] };
  return addonCheck(live, kind, undefined, absentOf(items)).cure === undefined
    ? undefined
    : 'not rolled out';
}

/** Returns the object without the fields that change with every write. */
function essenceOf({ metadata, ...rest }: kube.KubeObject): object {
  return {
    ...rest,
    metadata: { ...metadata, managedFields: 0, resourceVersion: 0, generation: 0 },
  };
}

type Served = Readonly<Record<'name' | 'kind', string>> & { readonly namespaced: boolean };
/** The resource and the options that a request for the object needs. */
interface Located {
  readonly resource: kube.Resource;
  readonly options: RequestOptions;
  /** The identity of the object in the form that the arguments of kubectl use. */
  readonly identity: string;
}
type Locate = (object: kube.KubeObject) => Promise<Located | undefined>;

/**
 * Returns a function that finds the resource of a kind. The function reads the kinds of each API version only once. It
 * resolves with undefined if the API server does not serve the kind at the moment.
 */
function discovery({ client, abort }: AddonTools): Locate {
  async function kindsOf(apiVersion: string): Promise<Served[]> {
    const path = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
    const { status, body } = await client.raw(path, { abort });
    const message = `the API server does not say which kinds ${apiVersion} has: it answered ${status}`;
    if (status !== 200 && status !== 404)
      throw new StatusError({ kind: 'Status', code: status, message });
    return ((status === 200 ? JSON.parse(body) : {}) as { resources?: Served[] }).resources ?? [];
  }
  const known = new Map<string, Promise<Served[]>>();
  return async ({ apiVersion = '', kind, metadata }) => {
    const kinds = await known.getOrInsertComputed(apiVersion, kindsOf);
    const served = kinds.find((each) => each.kind === kind && !each.name.includes('/'));
    if (!served) return undefined;
    const resource = (served.namespaced ? kube.namespaced : kube.clusterScoped)(
      apiVersion,
      served.kind,
      served.name,
    );
    const within = served.namespaced ? (metadata.namespace ?? 'default') : undefined;
    const type = [served.name, resource.group].filter((part) => part !== '').join('.');
    const identity = [type, metadata.name, ...(within === undefined ? [] : ['-n', within])].join(
      ' ',
    );
    return { resource, options: { namespace: within, abort }, identity };
  };
}

async function put(
  { writer, force, dryRun }: AddonTools,
  { resource, options }: Located,
  object: kube.KubeObject,
) {
  const whole = { ...options, type: 'apply', fieldManager: FIELD_MANAGER, force, dryRun } as const;
  return await ifFound(writer.patch(resource, object.metadata.name, object, whole));
}

/**
 * Applies an addon and waits until its workloads have rolled out. Resolves with undefined on success, and with the
 * reason after a failure. If the addon has a problem, it is not applied.
 */
export async function applyAddon(tools: AddonTools, addon: Addon): Promise<string | undefined> {
  const { problems } = await tryOut(tools, addon);
  if (problems.length > 0) return problems.join('; ');
  const applied = new Set<string>();
  const turn = async (): Promise<readonly string[]> => {
    const failed: string[] = [];
    const locate = discovery(tools);
    for (const object of addon.objects)
      try {
        const found = await locate(object);
        if (found && (await put(tools, found, object))) applied.add(found.identity);
      } catch (error) {
        failed.push(problemOf(object, error));
      }
    const { problems: refused, changes } = await tryOut(tools, addon);
    return [...new Set([...failed, ...refused, ...changes])];
  };
  const left = await untilRight(turn, (all) => all.length === 0, { ...tools, withinMs: 300_000 });
  const fieldManager = `${FIELD_MANAGER}-${addon.name}`;
  const data = { [addon.name]: JSON.stringify([...applied]) };
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: RECORD }, data };
  const options = {
    namespace,
    type: 'apply',
    force: true,
    fieldManager,
    abort: tools.abort,
  } as const;
  await tools.writer.patch(kube.configMaps, RECORD, map, options);
  return left.length > 0 ? `after 5 min: ${left.join('; ')}` : undefined;
}
