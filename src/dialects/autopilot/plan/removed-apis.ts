/** Checks, before a new Plan starts, whether the cluster has objects of a kind that the new version no longer serves. */
import type { Plan } from '../../../api/autopilot/plan.ts';
import type { Effects } from '../../../engine/execute/writes.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { KubeObject, Resource } from '../../../kube/resources.ts';
import { resourceIn } from '../../../kube/served-kinds.ts';
import { ifFound, StatusError } from '../../../kube/status-error.ts';
import { compareVersions, parseVersion } from '../../../util/version.ts';
import { K0S_REMOVED_APIS, type RemovedApi } from '../../../versions/data/by-hand.ts';

type Server = Pick<Effects, 'client' | 'abort'>;

/**
 * Resolves with the sentence that k0s uses for the first removed API whose objects would be lost; undefined if no
 * objects would be lost. Rejects if the API server gives no usable answer. The caller may then retry.
 */
export async function askRemovedApis(server: Server, version: string): Promise<string | undefined> {
  const wanted = parseVersion(version);
  if (!wanted) return undefined;
  for (const api of K0S_REMOVED_APIS) {
    const removedIn = parseVersion(api.removedIn);
    if (!removedIn || compareVersions(wanted, removedIn) < 0) continue;
    const resource = await served(server, api, api.version);
    const { items } = resource
      ? await server.client.listAll(resource, { abort: server.abort })
      : { items: [] };
    if (!resource || items.length === 0 || (await areServedLater(server, api, items))) continue;
    const what = `${resource.plural}.${api.group} ${api.version} has been removed in Kubernetes ${api.removedIn}`;
    return `${what}, but there are ${items.length} such resources in the cluster`;
  }
  return undefined;
}

/** Resolves with the resource that serves the kind at this version; undefined if the API server does not serve it. */
async function served(
  server: Server,
  { group, kind }: RemovedApi,
  version: string,
): Promise<Resource | undefined> {
  const path = `/apis/${group}/${version}`;
  const { status, body } = await server.client.raw(path, { abort: server.abort });
  if (status === 404) return undefined;
  if (status !== 200)
    throw new StatusError({ kind: 'Status', code: status, message: `${path} answered ${status}` });
  return resourceIn(JSON.parse(body), `${group}/${version}`, kind);
}

/** Resolves with true if each object is also served in the version of the successor, so that no object is lost. */
async function areServedLater(
  server: Server,
  api: RemovedApi,
  items: readonly KubeObject[],
): Promise<boolean> {
  const { client, abort } = server;
  const resource =
    api.successor === undefined ? undefined : await served(server, api, api.successor);
  if (!resource) return false;
  for (const { metadata } of items) {
    const { name, namespace } = metadata;
    if (!(await ifFound(client.get(resource, name, { namespace, abort })))) return false;
  }
  return true;
}

/**
 * Resolves with the reason why the Plan must not start; empty if there is no such reason. Like k0s, it checks the
 * versions of bundles, skips the versions of forced updates, and reports only the first reason.
 */
export async function preconditions(
  client: KubeClient,
  { spec }: Plan,
  abort?: AbortSignal,
): Promise<Reason[]> {
  for (const version of new Set(spec.commands.flatMap(versionsOf))) {
    const objection = await askRemovedApis({ client, abort }, version);
    if (objection !== undefined) return [because('RemovedApis', objection)];
  }
  return [];
}

/** Returns the versions of a command that must be checked. A forced update needs no check. */
export function versionsOf({
  k0supdate,
  airgapupdate,
}: Plan['spec']['commands'][number]): string[] {
  const update = k0supdate && k0supdate.forceupdate !== true ? [k0supdate.version] : [];
  return [...(airgapupdate ? [airgapupdate.version] : []), ...update];
}
