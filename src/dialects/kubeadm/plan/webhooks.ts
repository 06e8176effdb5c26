/**
 * Finds admission webhooks that would block an upgrade. The API server must call such a webhook for pods, Nodes or
 * Machines, but no endpoint serves it, or only one node serves it.
 */
import type { KubeClient } from '../../../kube/client.ts';
import { clusterScoped, endpointSlices, type KubeObject } from '../../../kube/resources.ts';
import { isForbidden, StatusError } from '../../../kube/status-error.ts';
import { messageOf } from '../../../util/errors.ts';
import { type Finding, warn } from '../../../versions/findings.ts';

interface Webhook {
  name: string;
  failurePolicy?: string;
  rules?: { apiGroups?: string[]; operations?: string[]; resources?: string[] }[];
  clientConfig?: { service?: { namespace: string; name: string } };
}

export interface WebhookFinding {
  readonly finding: Finding;
  /** The only node that serves the webhook. Its drain makes the webhook fail. */
  readonly only?: string;
}

const CONFIGURATIONS = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'].map(
  (kind) =>
    clusterScoped<KubeObject & { webhooks?: Webhook[] }>('admissionregistration.k8s.io/v1', kind),
);
/**
 * Matches the resources that are created or changed during an upgrade: replacements of evicted pods are created,
 * kubelets write their Nodes, and machine-controller writes Machines. Deletions are not relevant.
 */
const WRITTEN = /^(\*|pods|nodes|machine(deployment|set)?s)(\/|$)/;

/**
 * Returns the webhooks that may block an upgrade. Callers only warn, because selectors and conditions of webhooks are not
 * evaluated.
 */
export async function webhookFindings(
  client: KubeClient,
  abort: AbortSignal,
): Promise<WebhookFinding[]> {
  try {
    const lists = await Promise.all(
      CONFIGURATIONS.map(async (kind) => await client.listAll(kind, { abort })),
    );
    const webhooks = lists
      .flatMap(({ items }) => items.flatMap((each) => each.webhooks ?? []))
      .filter(isRequired);
    const found = await Promise.all(
      webhooks.map(async (each) => await problemOf(each, client, abort)),
    );
    return found.flatMap((finding) => finding ?? []);
  } catch (error) {
    // If the API server refuses to list webhooks, the plan skips this check and is still valid.
    if (!(error instanceof StatusError)) throw error;
    const cure = isForbidden(error) ? '; apply what `refit install rights kubeadm` prints' : '';
    return [{ finding: warn('webhook', `webhooks are not checked: ${messageOf(error)}${cure}`) }];
  }
}

function isRequired({ failurePolicy, rules = [] }: Webhook): boolean {
  const isMet = rules.some(
    ({ apiGroups = [], operations = [], resources = [] }) =>
      apiGroups.some((group) => ['', '*', 'cluster.k8s.io'].includes(group)) &&
      operations.some((operation) => ['CREATE', 'UPDATE', '*'].includes(operation)) &&
      resources.some((resource) => WRITTEN.test(resource)),
  );
  return isMet && failurePolicy !== 'Ignore';
}

async function problemOf({ name, clientConfig }: Webhook, client: KubeClient, abort: AbortSignal) {
  // A webhook without a Service has a URL outside of the cluster, and is not checked.
  if (clientConfig?.service === undefined) return undefined;
  const { namespace, name: service } = clientConfig.service;
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const { items } = await client.listAll(endpointSlices, { namespace, labelSelector, abort });
  const all = items.flatMap(({ endpoints }) => endpoints ?? []);
  const ready = all.filter(({ conditions }) => conditions?.ready !== false);
  const nodes = new Set(ready.map(({ nodeName }) => nodeName));
  const who = `${name}, which must allow pods, Nodes or Machines`;
  if (ready.length === 0) {
    const silent = `no endpoint of service ${namespace}/${service} is ready for webhook ${who}: fix the service first`;
    return { finding: warn('webhook', silent) };
  }
  const [only] = nodes;
  if (nodes.size > 1 || only === undefined) return undefined;
  const alone = `only node ${only} serves webhook ${who}: while that node is drained, no node serves the webhook; run a replica on another node`;
  return { finding: warn('webhook', alone), only };
}
