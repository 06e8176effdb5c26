/** Applies manifests without kubectl: one start of it costs as much as twenty requests, and tests need hundreds. */
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  clusterScoped,
  customResourceDefinitions,
  type KubeObject,
  namespaced,
  type Resource,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';

/**
 * Long enough for a busy API server. It answers late, and it serves a definition that was deleted before only after
 * some seconds.
 */
const WITHIN_MS = 150_000;
const POLL_MS = 200;

/**
 * Applies YAML or JSON text as the user of `kubeconfig`. Resolves when the kinds that the text defines are served.
 * Rejects if the API server refuses a part of the text.
 */
export async function applyManifest(kubeconfig: string, manifest: string): Promise<void> {
  using client = createClient(await loadClusterConfig({ path: kubeconfig }));
  const objects = objectsIn(manifest);
  const kinds = new Map<string, Resource>();
  for (const object of objects) {
    const kind = `${object.kind} of ${object.apiVersion}`;
    const resource = kinds.get(kind) ?? (await within(kind, () => kindOf(client, object)));
    kinds.set(kind, resource);
    const { name, namespace = resource.namespaced ? 'default' : undefined } = object.metadata;
    const who = { fieldManager: 'refit-testenv', force: true, deadlineMs: WITHIN_MS } as const;
    await client.patch(resource, name, asWanted(object), { namespace, type: 'apply', ...who });
  }
  for (const { kind, metadata } of objects)
    if (kind === customResourceDefinitions.kind)
      await within(metadata.name, () => established(client, metadata.name));
}

function objectsIn(manifest: string): KubeObject[] {
  const objects = parseAllDocuments(manifest).map(
    (document) => document.toJS() as KubeObject | null,
  );
  return objects
    .filter((object) => object !== null)
    .flatMap((object) => (isList(object) ? object.items : [object]));
}

/**
 * Returns the object without the fields that identify one earlier object. With these fields, the API server would
 * change only that earlier object.
 */
function asWanted({ metadata, ...rest }: KubeObject): KubeObject {
  const past = ['uid', 'resourceVersion', 'managedFields'];
  const kept = Object.entries(metadata).filter(([field]) => !past.includes(field));
  return { ...rest, metadata: { name: metadata.name, ...Object.fromEntries(kept) } };
}

function isList(object: KubeObject): object is KubeObject & { readonly items: KubeObject[] } {
  return object.kind === 'List';
}

/** Calls `ask` until it returns an answer. Throws REFIT_TESTENV if there is no answer in time. */
async function within<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = systemClock.monotonic() + WITHIN_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (systemClock.monotonic() > deadline)
      throw new RefitError('REFIT_TESTENV', `${what} was not served after ${WITHIN_MS / 1000} s`);
    await sleep(systemClock, POLL_MS);
  }
}

/** Returns the kind as the API server serves it; undefined if the API server does not serve it. */
async function kindOf(
  client: KubeClient,
  { apiVersion = '', kind = '' }: KubeObject,
): Promise<Resource | undefined> {
  const path = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
  const { status, body } = await client.raw(path, { deadlineMs: WITHIN_MS });
  if (status !== 200) return undefined;
  const { resources } = JSON.parse(body) as {
    resources: { name: string; kind: string; namespaced: boolean }[];
  };
  const found = resources.find((each) => each.kind === kind && !each.name.includes('/'));
  return found && (found.namespaced ? namespaced : clusterScoped)(apiVersion, kind, found.name);
}

async function established(client: KubeClient, name: string): Promise<true | undefined> {
  const { status } = await client.get(customResourceDefinitions, name, { deadlineMs: WITHIN_MS });
  return (
    status?.conditions?.some((each) => each.type === 'Established' && each.status === 'True') ||
    undefined
  );
}
