/**
 * Describes the objects of KEP-4563. With these objects, a drain requests that other components evict a pod. Also
 * evaluates the state of these objects for one pod.
 */
import { type Condition, type KubeObject, namespaced, type Pod } from '../kube/resources.ts';
import { printable } from '../util/printable.ts';

export const GROUP_VERSION = 'lifecycle.k8s.io/v1alpha1';

/** The request of one requester to evict one pod. The pod is in the same namespace. */
export interface EvictionRequest extends KubeObject {
  spec: {
    target: { pod?: PodTarget };
    requester: string;
    intent: string;
  };
  status?: { conditions?: Condition[]; observedGeneration?: number };
}

/**
 * An Eviction: Kubernetes records in it the work on all requests for one pod. The eviction-request controller creates
 * this object.
 */
export interface RequestedEviction extends KubeObject {
  spec: { target: { pod?: PodTarget } };
  status?: {
    conditions?: Condition[];
    targetResponders?: { name: string; state: string }[];
    responders?: Responder[];
  };
}

interface PodTarget {
  name: string;
  uid: string;
}

/** The report of a responder about its work. A responder evicts the pod in its own way. */
interface Responder {
  name: string;
  heartbeatTime?: string;
  expectedCompletionTime?: string;
  message?: string;
}

export const evictionRequests = namespaced<EvictionRequest>(GROUP_VERSION, 'EvictionRequest');
export const requestedEvictions = namespaced<RequestedEviction>(GROUP_VERSION, 'Eviction');

/** The path at which the API server lists the kinds that it serves in the API group of EvictionRequests. */
export const LIFECYCLE_PATH = `/apis/${GROUP_VERSION}`;

/**
 * The name of Refit as the requester. It is also a label of Refit's requests. Kubernetes sets the same label on the
 * Evictions that it creates for these requests, so one selector finds both kinds of objects.
 */
export const REQUESTER = 'upgrade.refit.dev/drain';

/** The annotation of a request with the name of the node that is drained. */
const NODE_ANNOTATION = 'upgrade.refit.dev/drained-node';

/** Returns the name of the request for a pod. It is the same for every drain, so a second drain finds the request of the first. */
export function requestName({ metadata: { uid = '' } }: Pod): string {
  return `refit-drain-${uid}`;
}

/** Returns the request for a pod. The garbage collector deletes it after the pod, even if no drain runs any more. */
export function requestFor(pod: Pod, node: string): EvictionRequest {
  const { name, namespace, uid = '' } = pod.metadata;
  return {
    apiVersion: GROUP_VERSION,
    kind: 'EvictionRequest',
    metadata: {
      name: requestName(pod),
      ...(namespace === undefined ? {} : { namespace }),
      labels: { [REQUESTER]: 'requester', 'app.kubernetes.io/managed-by': 'refit' },
      annotations: { [NODE_ANNOTATION]: node },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
    },
    spec: { target: { pod: { name, uid } }, requester: REQUESTER, intent: 'Eviction' },
  };
}

/** Returns the node that was drained when the request was made; undefined if the request names none. */
export function drainedNode({ metadata }: EvictionRequest): string | undefined {
  return metadata.annotations?.[NODE_ANNOTATION];
}

/** A function that returns a part of a sentence for people, given the names of the pods. */
type Describe = (pods: string) => string;

/**
 * The state of the request for a pod, which decides what a drain does next. absent: the request no longer exists ·
 * idle: no responder works on it yet · active: a responder works on it · failed: no responder works on it any more.
 */
export type RequestVerdict =
  | { readonly kind: 'absent' }
  | { readonly kind: 'idle'; readonly isObserved: boolean; readonly describe: Describe }
  | { readonly kind: 'active'; readonly describe: Describe }
  | { readonly kind: 'failed'; readonly reason: string };

/** Says in words why the Evictions cannot be read. */
export interface Unreadable {
  readonly problem: string;
}

/**
 * If the last report of a responder is older than this number of milliseconds, the text for people includes the time of
 * the report.
 */
const OLD_HEARTBEAT_MS = 5 * 60_000;

/** The maximum number of characters of a text that another component has written. */
const MOST_CHARACTERS = 300;

/** Makes a text that somebody else has written, such as a responder, printable and at most MOST_CHARACTERS long. */
export function foreign(text: string): string {
  const shown = printable(text.slice(0, MOST_CHARACTERS));
  return text.length > MOST_CHARACTERS ? `${shown}…` : shown;
}

/**
 * Returns the state of the request for a pod. `evictions` are the Evictions for the pod, or the reason why they cannot
 * be read. `now` is in milliseconds.
 */
export function judgeRequest(
  request: EvictionRequest | undefined,
  evictions: readonly RequestedEviction[] | Unreadable,
  now: number,
): RequestVerdict {
  if (request === undefined) return { kind: 'absent' };
  const failed = trueOf(request.status?.conditions, 'Failed');
  if (failed) return { kind: 'failed', reason: `it failed: ${foreign(textOf(failed))}` };
  if (request.spec.intent !== 'Eviction')
    return {
      kind: 'failed',
      reason: `somebody has set its intent to ${foreign(request.spec.intent)}`,
    };
  if (request.metadata.deletionTimestamp !== undefined)
    return idle(true, 'is being deleted by somebody else');
  if (request.status?.observedGeneration === undefined)
    return idle(false, 'has not been seen by the controller of Kubernetes yet');
  if ('problem' in evictions) {
    const { problem } = evictions;
    return {
      kind: 'active',
      describe: (pods) =>
        `the EvictionRequest of ${pods} is accepted; its Eviction cannot be read: ${problem}`,
    };
  }
  const active = evictions.flatMap((each) => activeResponderOf(each) ?? [])[0];
  return active === undefined ? idle(true, 'has no active responder yet') : activeBy(active, now);
}

function idle(isObserved: boolean, what: string): RequestVerdict {
  return { kind: 'idle', isObserved, describe: (pods) => `the EvictionRequest of ${pods} ${what}` };
}

function activeResponderOf({ status = {} }: RequestedEviction): Responder | undefined {
  const active = status.targetResponders?.find(({ state }) => state === 'Active');
  if (active === undefined) return undefined;
  return status.responders?.find(({ name }) => name === active.name) ?? { name: active.name };
}

function activeBy(responder: Responder, now: number): RequestVerdict {
  const { name, expectedCompletionTime: end, message = '' } = responder;
  const times = [
    describeHeartbeat(responder, now) ?? [],
    end === undefined ? [] : describeExpectedEnd(end),
  ].flat();
  const inBrackets = times.length === 0 ? '' : ` (${times.join(', ')})`;
  const words = message === '' ? '' : `: ${foreign(message)}`;
  return {
    kind: 'active',
    describe: (pods) => `responder ${foreign(name)} evicts ${pods}${inBrackets}${words}`,
  };
}

/**
 * Returns a clause about the last heartbeat; undefined if the heartbeat is recent. If the text contained recent times,
 * each heartbeat would change the text, and so the object of the plan.
 */
function describeHeartbeat({ heartbeatTime }: Responder, now: number): string | undefined {
  if (heartbeatTime === undefined) return 'it has not reported yet';
  const isYoung = now - Date.parse(heartbeatTime) < OLD_HEARTBEAT_MS;
  return isYoung ? undefined : `it reported last at ${foreign(heartbeatTime)}`;
}

/**
 * Rounds the expected end up to a full minute. A responder may change its estimate with each heartbeat, and each change
 * of the text causes a write to the object of the plan.
 */
function describeExpectedEnd(end: string): string {
  const minute = 60_000;
  const time = new Date(Math.ceil(Date.parse(end) / minute) * minute);
  if (Number.isNaN(time.getTime())) return `done by ${foreign(end)}`;
  return `done by ${time.toISOString().replace(':00.000Z', 'Z')}`;
}

function trueOf(conditions: readonly Condition[] = [], type: string): Condition | undefined {
  return conditions.find((each) => each.type === type && each.status === 'True');
}

function textOf({ reason, message }: Condition): string {
  return [reason, message].filter((each) => each !== undefined && each !== '').join(', ');
}
