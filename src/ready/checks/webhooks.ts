/**
 * Checks the admission webhooks that must answer while nodes are drained and restarted. If such a webhook does not answer,
 * the API server refuses the pods that replace evicted pods, or what the kubelets write.
 */
import { X509Certificate } from 'node:crypto';
import {
  clusterScoped,
  type EndpointSlice,
  endpointSlices,
  type KubeObject,
  keyAt,
  type LabelSelector,
  namespaces,
} from '../../kube/resources.ts';
import { matchesLabels } from '../../kube/selectors.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Asking, NoAnswer } from '../asking.ts';
import type { Check } from '../context.ts';
import { type FoundBy, unansweredIn } from '../finding.ts';

interface WebhookRule {
  readonly apiGroups?: readonly string[];
  readonly operations?: readonly string[];
  readonly resources?: readonly string[];
}

export interface Webhook {
  readonly name: string;
  readonly failurePolicy?: string;
  readonly rules?: readonly WebhookRule[];
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly matchConditions?: readonly unknown[];
  readonly clientConfig?: {
    readonly caBundle?: string;
    readonly service?: { readonly namespace: string; readonly name: string };
  };
}

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

export const WEBHOOK_CONFIGURATIONS = [
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
].map((kind) => clusterScoped<WebhookConfiguration>('admissionregistration.k8s.io/v1', kind));

interface WrittenKinds {
  readonly groups: readonly string[];
  readonly resources: RegExp;
}

/** The groups and resources that an upgrade creates or changes, by what that is. Deletions are not relevant. */
const WRITTEN: readonly WrittenKinds[] = [
  { groups: [''], resources: /^(pods|nodes)(\/|$)/ },
  { groups: ['coordination.k8s.io'], resources: /^leases$/ },
  { groups: ['batch'], resources: /^jobs$/ },
  { groups: ['cluster.k8s.io', 'cluster.x-k8s.io'], resources: /^machine(deployment|set)?s(\/|$)/ },
];
/**
 * What a server of a new version writes in kube-system when it starts. RKE2 changes the annotations of Namespaces, and
 * kubeadm writes its configuration, CoreDNS and kube-proxy. A server that may not write them does not start, or kubeadm
 * ends with an error.
 */
const WRITTEN_BY_SERVERS: readonly WrittenKinds[] = [
  { groups: [''], resources: /^(namespaces|configmaps)(\/|$)/ },
  { groups: ['apps'], resources: /^(daemonsets|deployments)$/ },
];
const SYSTEM_NAMESPACE = 'kube-system';
const MONTH_MS = 30 * 24 * 60 * 60 * 1000;

export const checkWebhooks: Check = async (context) => {
  const { problems, unread, count } = await webhookProblems(context);
  const findings = [...problems.map(({ finding }) => finding), ...unansweredIn(unread)];
  if (findings.length > 0) return findings;
  const answers = counted(count, 'webhook');
  return [{ state: 'ok', message: `${answers} must answer during an upgrade, and can` }];
};

export interface WebhookProblem {
  readonly finding: FoundBy;
  /** The only node that serves the webhook. The problem exists only while this node is drained. */
  readonly only?: string;
}

export interface WebhookProblems {
  readonly problems: readonly WebhookProblem[];
  /** The questions that have no answer. */
  readonly unread: readonly NoAnswer[];
  /** The number of webhooks that must answer during an upgrade. */
  readonly count: number;
}

/** Resolves with the webhooks that may refuse what an upgrade writes. `now` is in milliseconds since the Unix epoch. */
export async function webhookProblems({
  list,
  now,
}: Pick<Asking, 'list'> & { readonly now: number }): Promise<WebhookProblems> {
  const lists = await Promise.all(
    WEBHOOK_CONFIGURATIONS.map(async (kind) => ({ kind: kind.kind, asked: await list(kind) })),
  );
  const [slices, spaces] = await Promise.all([list(endpointSlices), list(namespaces)]);
  const unread = [...lists.map(({ asked }) => asked), slices, spaces].filter(
    (each) => each.kind === 'unknown',
  );
  const world: World = {
    slices: slices.kind === 'answer' ? slices.value : undefined,
    namespaces: spaces.kind === 'answer' ? spaces.value : undefined,
    now,
  };
  let count = 0;
  const problems = lists.flatMap(({ kind, asked }) =>
    (asked.kind === 'answer' ? asked.value : []).flatMap(({ metadata: { name }, webhooks = [] }) =>
      webhooks.filter(mustAnswer).flatMap((webhook) => {
        count++;
        const object = `${kind} ${name}`;
        return problemsOf(webhook, world).map(({ finding, ...problem }) => ({
          ...problem,
          finding: { object, ...finding },
        }));
      }),
    ),
  );
  return { problems, unread, count };
}

interface World {
  readonly slices: readonly EndpointSlice[] | undefined;
  readonly namespaces: readonly KubeObject[] | undefined;
  readonly now: number;
}

/** Returns true if the API server refuses something that an upgrade writes when the webhook does not answer. */
export function mustAnswer({ failurePolicy, rules = [] }: Webhook): boolean {
  return failurePolicy !== 'Ignore' && meets(rules, [...WRITTEN, ...WRITTEN_BY_SERVERS]);
}

/** Returns true if one of the rules concerns one of the kinds. */
function meets(rules: readonly WebhookRule[], kinds: readonly WrittenKinds[]): boolean {
  return rules.some((rule) => isMet(rule, kinds));
}

function isMet(
  { apiGroups = [], operations = [], resources = [] }: WebhookRule,
  kinds: readonly WrittenKinds[],
): boolean {
  if (!operations.some((each) => ['CREATE', 'UPDATE', '*'].includes(each))) return false;
  return kinds.some(
    (written) =>
      apiGroups.some((group) => group === '*' || written.groups.includes(group)) &&
      resources.some((each) => /^\*(\/|$)/.test(each) || written.resources.test(each)),
  );
}

function problemsOf(
  webhook: Webhook,
  { slices, namespaces: spaces, now }: World,
): WebhookProblem[] {
  const { name, clientConfig = {}, matchConditions = [], rules = [] } = webhook;
  const { service, caBundle = '' } = clientConfig;
  const covered = spaces?.filter((space) => isCovered(webhook, space)).map(nameOf);
  // Nothing else of an upgrade writes these kinds, and servers write them only there.
  if (covered?.includes(SYSTEM_NAMESPACE) === false && !meets(rules, WRITTEN)) return [];
  const expired = expiryOf(name, caBundle, now).map((finding) => ({ finding }));
  // A webhook without a Service is served outside of the cluster, so no drain ends it.
  if (service === undefined || slices === undefined) return expired;
  // No namespace has the labels, so the webhook is called only for objects without a namespace, such as Nodes.
  if (covered?.length === 0 && !concernsNodes(webhook)) return expired;
  const at = keyAt(service.name, service.namespace);
  const scope = `webhook ${name}, which must allow ${scopeOf(covered)}`;
  const unless = matchConditions.length > 0 ? ', unless its matchConditions leave them out' : '';
  const own = slices.filter(
    ({ metadata: { namespace, labels = {} } }) =>
      namespace === service.namespace && labels['kubernetes.io/service-name'] === service.name,
  );
  const ready = own
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  const certain = matchConditions.length > 0 ? 'warning' : 'blocker';
  if (ready.length === 0) {
    const silent: FoundBy = {
      state: certain,
      message: `no endpoint of Service ${at} is ready for ${scope}${unless}`,
      cure: 'repair what serves the webhook, or delete the configuration if nothing serves it any more',
    };
    return [...expired, { finding: silent }];
  }
  const nodes = new Set(ready.map(({ nodeName }) => nodeName));
  const [only] = nodes;
  if (nodes.size > 1 || only === undefined) return expired;
  const needsItself = covered?.includes(service.namespace) === true;
  const alone: FoundBy = {
    state: needsItself ? certain : 'warning',
    message: `only node ${only} serves ${scope}${unless}; while this node is drained, no node serves it${needsItself ? ', and the pod that would serve it again needs it, too' : ''}`,
    cure: needsItself
      ? `run a replica on another node, and leave the namespace ${service.namespace} out with its namespaceSelector`
      : 'run a replica on another node',
  };
  return [...expired, { finding: alone, only }];
}

function nameOf({ metadata: { name } }: KubeObject): string {
  return name;
}

function isCovered({ namespaceSelector }: Webhook, { metadata }: KubeObject): boolean {
  return namespaceSelector === undefined || matchesLabels(namespaceSelector, metadata.labels);
}

function concernsNodes({ rules = [] }: Webhook): boolean {
  return rules.some(({ resources = [] }) => resources.some((each) => /^(\*|nodes)/.test(each)));
}

function scopeOf(covered: readonly string[] | undefined): string {
  if (covered === undefined || covered.includes(SYSTEM_NAMESPACE))
    return 'pods or other objects of an upgrade, also in kube-system';
  if (covered.length === 0) return 'Nodes';
  return `pods or other objects of an upgrade in ${listed(covered, 3)}`;
}

/** Returns a finding about the CA certificate with which the API server checks the webhook, if it ends soon. */
function expiryOf(name: string, caBundle: string, now: number): FoundBy[] {
  if (caBundle === '') return [];
  const text = Buffer.from(caBundle, 'base64').toString();
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g);
  const ends = (certificates ?? []).flatMap((pem) => endOf(pem));
  const what = `the caBundle of webhook ${name}`;
  if (ends.length === 0)
    return [{ state: 'unknown', message: `${what} has no certificate that can be read` }];
  // One valid certificate is enough.
  const last = Math.max(...ends);
  const date = new Date(last).toISOString().slice(0, 10);
  const cure = 'renew the certificates of the webhook';
  if (last <= now) return [{ state: 'blocker', message: `${what} ended on ${date}`, cure }];
  if (last - now > MONTH_MS) return [];
  return [{ state: 'warning', message: `${what} ends on ${date}`, cure }];
}

function endOf(pem: string): number[] {
  try {
    return [new X509Certificate(pem).validToDate.getTime()];
  } catch {
    return [];
  }
}
