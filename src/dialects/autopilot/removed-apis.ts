/** Owns the question whether objects are left of a kind that a version of Kubernetes does not serve any more. */
import type { Plan } from '../../api/autopilot/plan.ts';
import { because, type Reason } from '../../engine/model/reasons.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Resource } from '../../kube/resources.ts';
import { isNotFound, StatusError } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import { isRecord } from '../../util/json.ts';
import { compareVersions, parseVersion } from '../../util/version.ts';

interface RemovedApi {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly removedIn: string;
  /** The version of the same group in which objects live on. */
  readonly successor?: string;
}

const FLOW_CONTROL = 'flowcontrol.apiserver.k8s.io';

/** As k0s has it, so that the same plans stop. The last one is no real kind: it is there to try the check with. */
const REMOVED: readonly RemovedApi[] = [
  { group: FLOW_CONTROL, version: 'v1beta2', kind: 'FlowSchema', removedIn: 'v1.29.0', successor: 'v1beta3' },
  {
    group: FLOW_CONTROL,
    version: 'v1beta2',
    kind: 'PriorityLevelConfiguration',
    removedIn: 'v1.29.0',
    successor: 'v1',
  },
  { group: FLOW_CONTROL, version: 'v1beta3', kind: 'FlowSchema', removedIn: 'v1.32.0', successor: 'v1' },
  {
    group: FLOW_CONTROL,
    version: 'v1beta3',
    kind: 'PriorityLevelConfiguration',
    removedIn: 'v1.32.0',
    successor: 'v1',
  },
  { group: 'k0s.k0sproject.example.com', version: 'v1beta1', kind: 'RemovedCRD', removedIn: 'v99.99.99' },
];

/**
 * What stands against `version`, in k0s's own words, or undefined where nothing does. Every time the API server is asked
 * anew what it serves, since kinds come and go. A version that cannot be read has nothing against it.
 *
 * @throws StatusError, TransportError or SyntaxError where no answer came: it says nothing of the version, so ask again later
 */
export async function askRemovedApis(
  client: KubeClient,
  version: string,
  abort: AbortSignal,
): Promise<string | undefined> {
  const wanted = parseVersion(version);
  if (!wanted) return undefined;
  for (const api of REMOVED) {
    const removedIn = parseVersion(api.removedIn);
    if (!removedIn || compareVersions(wanted, removedIn) < 0) continue;
    const resource = await served(client, api, api.version, abort);
    const { items } = resource ? await client.listAll(resource, { abort }) : { items: [] };
    if (resource && items.length > 0 && !(await areServedLater(client, api, items, abort)))
      return (
        `${resource.plural}.${api.group} ${api.version} has been removed in Kubernetes ${api.removedIn}, ` +
        `but there are ${items.length} such resources in the cluster`
      );
  }
  return undefined;
}

/** The resource of that kind, as the API server describes it at this moment; undefined where it serves none. */
async function served(
  client: KubeClient,
  { group, kind }: RemovedApi,
  version: string,
  abort: AbortSignal,
): Promise<Resource | undefined> {
  const path = `/apis/${group}/${version}`;
  const { status, body } = await client.raw(path, { abort });
  if (status === 404) return undefined;
  if (status !== 200) throw new StatusError({ kind: 'Status', code: status, message: `${path} answered ${status}` });
  const list: unknown = JSON.parse(body);
  const resources: unknown = isRecord(list) ? list['resources'] : undefined;
  const entries = Array.isArray(resources) ? resources.filter(isRecord) : [];
  const found = entries.find((entry) => entry['kind'] === kind && !String(entry['name']).includes('/'));
  return found && { group, version, kind, plural: String(found['name']), namespaced: found['namespaced'] === true };
}

/** Whether each of the objects is there in the successor's version too: then nothing is lost with the old one. */
async function areServedLater(
  client: KubeClient,
  api: RemovedApi,
  items: readonly KubeObject[],
  abort: AbortSignal,
): Promise<boolean> {
  const resource = api.successor === undefined ? undefined : await served(client, api, api.successor, abort);
  if (!resource) return false;
  for (const { metadata } of items) {
    const { name, namespace } = metadata;
    const found = await client.get(resource, name, { namespace, abort }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (!found) return false;
  }
  return true;
}

const NEVER = new AbortController().signal;

/** As k0s: a forced update is not asked about, a bundle is. The first version that has something against it is told. */
export async function preconditions(
  client: KubeClient,
  { spec }: Plan,
  abort: AbortSignal = NEVER,
): Promise<readonly Reason[]> {
  for (const version of new Set(spec.commands.flatMap(versionsOf))) {
    const objection = await askRemovedApis(client, version, abort);
    if (objection !== undefined) return [because('RemovedApis', objection)];
  }
  return [];
}

function versionsOf({ k0supdate, airgapupdate }: Plan['spec']['commands'][number]): string[] {
  const update = k0supdate && k0supdate.forceupdate !== true ? [k0supdate.version] : [];
  return [...(airgapupdate ? [airgapupdate.version] : []), ...update];
}
