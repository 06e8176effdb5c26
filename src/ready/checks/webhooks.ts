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
  namespaced,
  namespaces,
} from '../../kube/resources.ts';
import { matchesLabels } from '../../kube/selectors.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Asking, NoAnswer, ReadResult } from '../asking.ts';
import type { Check } from '../context.ts';
import { type FoundBy, unansweredIn } from '../finding.ts';

interface WebhookRule {
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly operations?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
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
    readonly service?: ServiceName;
  };
}

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

export const WEBHOOK_CONFIGURATIONS = [
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
].map((kind) => clusterScoped<WebhookConfiguration>('admissionregistration.k8s.io/v1', kind));

interface Service extends KubeObject {
  readonly spec?: { readonly type?: string };
}

const services = namespaced<Service>('v1', 'Service');

type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/** A kind that an upgrade writes. */
interface WrittenKind {
  /** How a sentence calls the objects. */
  readonly title: string;
  readonly groups: readonly string[];
  readonly resources: readonly string[];
  readonly subresources: readonly string[];
  readonly operations: readonly Operation[];
  readonly scope: 'Cluster' | 'Namespaced';
  /** True if nothing but a server that starts writes it, and only in kube-system. */
  readonly isOfServers?: true;
}

const WRITES: readonly Operation[] = ['CREATE', 'UPDATE'];

const PODS: WrittenKind = {
  title: 'Pods',
  groups: [''],
  resources: ['pods'],
  subresources: ['status', 'eviction', 'binding'],
  // A kubelet deletes an evicted pod at the end, and a drain waits until it is gone.
  operations: [...WRITES, 'DELETE'],
  scope: 'Namespaced',
};

const NODES: WrittenKind = {
  title: 'Nodes',
  groups: [''],
  resources: ['nodes'],
  subresources: ['status'],
  operations: WRITES,
  scope: 'Cluster',
};

/**
 * The kinds that an upgrade writes. Deletions matter only for pods. RKE2 changes the annotations of Namespaces when it
 * starts, and kubeadm writes its configuration, CoreDNS and kube-proxy. A server that may not write them does not start, or
 * kubeadm ends with an error.
 */
const WRITTEN: readonly WrittenKind[] = [
  PODS,
  NODES,
  {
    title: 'Leases',
    groups: ['coordination.k8s.io'],
    resources: ['leases'],
    subresources: [],
    operations: WRITES,
    scope: 'Namespaced',
  },
  {
    title: 'Jobs',
    groups: ['batch'],
    resources: ['jobs'],
    subresources: ['status'],
    operations: WRITES,
    scope: 'Namespaced',
  },
  {
    title: 'Machines',
    groups: ['cluster.k8s.io', 'cluster.x-k8s.io'],
    resources: ['machines', 'machinesets', 'machinedeployments'],
    subresources: ['status'],
    operations: WRITES,
    scope: 'Namespaced',
  },
  {
    title: 'Namespaces',
    groups: [''],
    resources: ['namespaces'],
    subresources: [],
    operations: WRITES,
    scope: 'Cluster',
    isOfServers: true,
  },
  {
    title: 'ConfigMaps',
    groups: [''],
    resources: ['configmaps'],
    subresources: [],
    operations: WRITES,
    scope: 'Namespaced',
    isOfServers: true,
  },
  {
    title: 'DaemonSets and Deployments',
    groups: ['apps'],
    resources: ['daemonsets', 'deployments'],
    subresources: [],
    operations: WRITES,
    scope: 'Namespaced',
    isOfServers: true,
  },
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
  get,
  now,
}: Pick<Asking, 'list' | 'get'> & { readonly now: number }): Promise<WebhookProblems> {
  const lists = await Promise.all(
    WEBHOOK_CONFIGURATIONS.map(async (kind) => ({ kind: kind.kind, asked: await list(kind) })),
  );
  const [slices, spaces] = await Promise.all([list(endpointSlices), list(namespaces)]);
  const unread = [...lists.map(({ asked }) => asked), slices, spaces].filter(
    (each) => each.kind === 'unknown',
  );
  const webhooks = lists.flatMap(({ kind, asked }) =>
    (asked.kind === 'answer' ? asked.value : []).flatMap(({ metadata: { name }, webhooks: all }) =>
      (all ?? []).filter(mustAnswer).map((webhook) => ({ object: `${kind} ${name}`, webhook })),
    ),
  );
  const known = slices.kind === 'answer' ? slices.value : undefined;
  const world: World = {
    slices: known,
    services: await servicesWithoutSlices(webhooks, known ?? [], get),
    namespaces: spaces.kind === 'answer' ? spaces.value : undefined,
    now,
  };
  const problems = webhooks.flatMap(({ object, webhook }) =>
    problemsOf(webhook, world).map(({ finding, ...problem }) => ({
      ...problem,
      finding: { object, ...finding },
    })),
  );
  return { problems, unread, count: webhooks.length };
}

interface World {
  readonly slices: readonly EndpointSlice[] | undefined;
  /** The Services of webhooks that have no EndpointSlice, by namespace and name. */
  readonly services: ReadonlyMap<string, ReadResult<Service | undefined>>;
  readonly namespaces: readonly KubeObject[] | undefined;
  readonly now: number;
}

/**
 * Reads the Services that have no EndpointSlice. A Service of the type ExternalName never has one, because something
 * outside of the cluster serves it, and another Service may not exist.
 */
async function servicesWithoutSlices(
  webhooks: readonly { readonly webhook: Webhook }[],
  slices: readonly EndpointSlice[],
  get: Asking['get'],
): Promise<World['services']> {
  const bare = new Map(
    webhooks.flatMap(({ webhook: { clientConfig } }) => {
      const service = clientConfig?.service;
      const isBare = service !== undefined && !slices.some((slice) => isOfService(slice, service));
      return isBare ? [[keyAt(service.name, service.namespace), service] as const] : [];
    }),
  );
  const asked = [...bare].map(
    async ([key, { name, namespace }]) => [key, await get(services, name, namespace)] as const,
  );
  return new Map(await Promise.all(asked));
}

interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

function isOfService({ metadata }: EndpointSlice, { name, namespace }: ServiceName): boolean {
  const { namespace: own, labels = {} } = metadata;
  return own === namespace && labels['kubernetes.io/service-name'] === name;
}

/** Returns true if the API server refuses something that an upgrade writes when the webhook does not answer. */
export function mustAnswer({ failurePolicy, rules = [] }: Webhook): boolean {
  return failurePolicy !== 'Ignore' && writtenOf(rules).length > 0;
}

/** Returns the kinds that an upgrade writes, and about which the API server asks the webhook. */
function writtenOf(rules: readonly WebhookRule[]): readonly WrittenKind[] {
  return WRITTEN.filter((kind) => rules.some((rule) => isMet(rule, kind, kind.operations)));
}

function isMet(
  {
    apiGroups = [],
    apiVersions = ['*'],
    operations = [],
    resources = [],
    scope = '*',
  }: WebhookRule,
  kind: WrittenKind,
  wanted: readonly Operation[],
): boolean {
  return (
    operations.some((each) => each === '*' || wanted.some((operation) => operation === each)) &&
    apiGroups.some((group) => group === '*' || kind.groups.includes(group)) &&
    // Each of these kinds is served as v1 or as one of its betas. A rule for another version never applies.
    apiVersions.some((version) => version === '*' || version.startsWith('v1')) &&
    (scope === '*' || scope === kind.scope) &&
    resources.some((pattern) => isOfKind(pattern, kind))
  );
}

/** Returns true if the pattern of a rule, such as `pods/status`, includes something of the kind that an upgrade writes. */
function isOfKind(pattern: string, { resources, subresources }: WrittenKind): boolean {
  const [resource = '', subresource] = pattern.split('/');
  if (resource !== '*' && !resources.includes(resource)) return false;
  if (subresource === undefined) return true;
  // With a star for the resource, too, the pattern includes the resources themselves.
  if (subresource === '*') return resource === '*' || subresources.length > 0;
  return subresources.includes(subresource);
}

const REPAIR =
  'repair what serves the webhook, or delete the configuration if nothing serves it any more';

/** Returns the problem of a webhook whose Service has no EndpointSlice; undefined if the Service needs none. */
function bareProblem(
  asked: ReadResult<Service | undefined>,
  {
    at,
    scope,
    unless,
    state,
  }: Readonly<Record<'at' | 'scope' | 'unless', string>> & Pick<FoundBy, 'state'>,
): FoundBy | undefined {
  if (asked.kind === 'unknown')
    return { state: 'unknown', message: `whether something serves ${scope}: ${asked.why}` };
  if (asked.value === undefined)
    return { state, message: `there is no Service ${at} for ${scope}${unless}`, cure: REPAIR };
  if (asked.value.spec?.type === 'ExternalName') return undefined;
  return {
    state,
    message: `no endpoint of Service ${at} is ready for ${scope}${unless}`,
    cure: REPAIR,
  };
}

function problemsOf(
  webhook: Webhook,
  { slices, services: bare, namespaces: spaces, now }: World,
): WebhookProblem[] {
  const { name, clientConfig = {}, rules = [] } = webhook;
  const written = writtenOf(rules);
  const { service, caBundle = '' } = clientConfig;
  const covered = spaces?.filter((space) => isCovered(webhook, space)).map(nameOf);
  // Nothing else of an upgrade writes these kinds, and servers write them only there.
  if (covered?.includes(SYSTEM_NAMESPACE) === false && written.every((kind) => kind.isOfServers))
    return [];
  const expired = expiryOf(name, caBundle, now).map((finding) => ({ finding }));
  // A webhook without a Service is served outside of the cluster, so no drain ends it.
  if (service === undefined || slices === undefined) return expired;
  // No namespace has the labels, so the webhook is called only for objects without a namespace, such as Nodes.
  if (covered?.length === 0 && !written.includes(NODES)) return expired;
  const at = keyAt(service.name, service.namespace);
  const scope = `webhook ${name}, which must allow ${scopeOf(written, covered)}`;
  const filters = filtersOf(webhook);
  const unless = filters === undefined ? '' : `, unless its ${filters} leaves them out`;
  const certain = filters === undefined ? 'blocker' : 'warning';
  const found = bare.get(at);
  if (found !== undefined) {
    const problem = bareProblem(found, { at, scope, unless, state: certain });
    return problem === undefined ? expired : [...expired, { finding: problem }];
  }
  const ready = slices
    .filter((slice) => isOfService(slice, service))
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  if (ready.length === 0) {
    const silent: FoundBy = {
      state: certain,
      message: `no endpoint of Service ${at} is ready for ${scope}${unless}`,
      cure: REPAIR,
    };
    return [...expired, { finding: silent }];
  }
  const nodes = new Set(ready.map(({ nodeName }) => nodeName));
  const [only] = nodes;
  if (nodes.size > 1 || only === undefined) return expired;
  const needsItself = covered?.includes(service.namespace) === true && rules.some(asksAboutNewPods);
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

/** Returns the fields of the webhook that may leave out the objects of an upgrade; undefined if there are none. */
function filtersOf({ matchConditions = [], objectSelector = {} }: Webhook): string | undefined {
  const { matchLabels = {}, matchExpressions = [] } = objectSelector;
  const selects = Object.keys(matchLabels).length > 0 || matchExpressions.length > 0;
  const fields = [
    ...(matchConditions.length > 0 ? ['matchConditions'] : []),
    ...(selects ? ['objectSelector'] : []),
  ];
  return fields.length === 0 ? undefined : fields.join(' or ');
}

/** Returns true if the API server asks the webhook before it creates a pod. */
function asksAboutNewPods(rule: WebhookRule): boolean {
  return isMet(rule, PODS, ['CREATE']);
}

function scopeOf(written: readonly WrittenKind[], covered: readonly string[] | undefined): string {
  const titles = listed(written.map(({ title }) => title));
  if (written.every(({ scope }) => scope === 'Cluster')) return titles;
  if (covered === undefined || covered.includes(SYSTEM_NAMESPACE))
    return `${titles}, also in ${SYSTEM_NAMESPACE}`;
  return covered.length === 0 ? NODES.title : `${titles} in ${listed(covered, 3)}`;
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
