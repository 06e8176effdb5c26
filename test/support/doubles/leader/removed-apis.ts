/**
 * The original's check for objects of APIs that the wanted version no longer has. It reads the discovery of the API
 * server only once.
 */
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { Resource } from '../../../../src/kube/resources.ts';
import { isNotFound } from '../../../../src/kube/status-error.ts';
import { compareVersions, parseVersion } from '../../../../src/util/version.ts';

interface RemovedApi {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly removedIn: string;
  /** The API version that still serves the objects. */
  readonly successor?: string;
}

const FLOW_CONTROL = 'flowcontrol.apiserver.k8s.io';

/** The fixed table of the original. Its last entry exists only for the tests of the original. */
const REMOVED: readonly RemovedApi[] = [
  {
    group: FLOW_CONTROL,
    version: 'v1beta2',
    kind: 'FlowSchema',
    removedIn: 'v1.29.0',
    successor: 'v1beta3',
  },
  {
    group: FLOW_CONTROL,
    version: 'v1beta2',
    kind: 'PriorityLevelConfiguration',
    removedIn: 'v1.29.0',
    successor: 'v1',
  },
  {
    group: FLOW_CONTROL,
    version: 'v1beta3',
    kind: 'FlowSchema',
    removedIn: 'v1.32.0',
    successor: 'v1',
  },
  {
    group: FLOW_CONTROL,
    version: 'v1beta3',
    kind: 'PriorityLevelConfiguration',
    removedIn: 'v1.32.0',
    successor: 'v1',
  },
  {
    group: 'k0s.k0sproject.example.com',
    version: 'v1beta1',
    kind: 'RemovedCRD',
    removedIn: 'v99.99.99',
  },
];

/**
 * The check of one process. The process asks the discovery of the API server once and keeps the answer for its whole
 * life.
 */
export class RemovedApiCheck {
  readonly #served = new Map<string, readonly Resource[]>();

  /** Returns the sentence for the status of the plan. Undefined if nothing prevents the update. */
  async find(client: KubeClient, version: string): Promise<string | undefined> {
    const wanted = version.startsWith('v') ? parseVersion(version) : undefined;
    for (const api of REMOVED) {
      const removedIn = parseVersion(api.removedIn);
      // Compares the two values as versions, not as texts. A text that is not a version counts as older than every
      // version.
      if (wanted === undefined || removedIn === undefined || compareVersions(wanted, removedIn) < 0)
        continue;
      const resource = await this.#find(client, api);
      const count = resource === undefined ? 0 : await countOutdated(client, resource, api);
      if (resource === undefined || count === 0) continue;
      const what = `${resource.plural}.${api.group} ${api.version}`;
      return `${what} has been removed in Kubernetes ${api.removedIn}, but there are ${count} such resources in the cluster`;
    }
    return undefined;
  }

  async #find(
    client: KubeClient,
    { group, version, kind }: RemovedApi,
  ): Promise<Resource | undefined> {
    const path = `/apis/${group}/${version}`;
    let resources = this.#served.get(path);
    if (resources === undefined) {
      const { status, body } = await client.raw(path);
      resources = status === 200 ? readResources(body, group, version) : [];
      this.#served.set(path, resources);
    }
    return resources.find((each) => each.kind === kind);
  }
}

function readResources(body: string, group: string, version: string): Resource[] {
  const { resources } = JSON.parse(body) as {
    resources: { name: string; kind: string; namespaced: boolean }[];
  };
  return resources
    .filter(({ name }) => !name.includes('/'))
    .map(({ name, kind, namespaced }) => ({ group, version, kind, plural: name, namespaced }));
}

/**
 * Returns the number of all objects if at least one of them has no successor in the wanted version. Returns 0 if all
 * objects have a successor.
 */
async function countOutdated(
  client: KubeClient,
  resource: Resource,
  { successor }: RemovedApi,
): Promise<number> {
  const { items } = await client.listAll(resource);
  if (successor === undefined) return items.length;
  for (const { metadata } of items) {
    const place = { ...resource, version: successor };
    const isThere = await client.get(place, metadata.name, { namespace: metadata.namespace }).then(
      () => true,
      (error: unknown) => {
        if (isNotFound(error)) return false;
        throw error;
      },
    );
    if (!isThere) return items.length;
  }
  return 0;
}
