/**
 * Defines what Cluster API may change on a node apart from its version: the request on the Node, and the report of the
 * node's agent.
 */
import type { KubeObject } from '../kube/resources.ts';
import { isRecord, parseJson } from '../util/json.ts';

export const CONFIGURATION_ANNOTATION = 'upgrade.refit.dev/node-configuration';
export const CONFIGURATION_REPORT_ANNOTATION = 'upgrade.refit.dev/node-configuration-report';

/**
 * The items of a request have at most this many characters in total, because a Node can have no more than 256 KiB of
 * annotations.
 */
export const MOST_CHARACTERS = 64 * 1024;

export interface ConfigurationItem {
  /** The name is the path of a file, `user:NAME` for the SSH keys of that user, or `kubelet:ARGUMENT`. */
  readonly name: string;
  /** The content of a file or of keys is in base64. The value of an argument is plain text. */
  readonly content: string;
  /** The file mode. It is 0 for an argument. */
  readonly mode: number;
}

export interface ConfigurationRequest {
  /** The uid of the request. A later request for the same node has another uid. */
  readonly uid: string;
  readonly items: readonly unknown[];
}

export interface ConfigurationReport {
  /** Says for people why the request failed. It is undefined if all items are applied. */
  readonly failure: string | undefined;
}

/** Each path matches in only one spelling, so that names can be compared. */
const PATH = /^(?:\/(?!\.\.?(?:\/|$))[\w.@+:,=-]+)+$/;
const USER = /^user:[a-z_][a-z0-9_-]{0,31}$/;
/** Matches paths that belong to kubeadm, k0s and Refit, or are not files on a disk. */
const RESERVED =
  /^\/(?:proc|sys|dev|run|tmp|var\/(?:run|tmp)|etc\/(?:kubernetes|k0s|refit)|var\/lib\/(?:kubelet|etcd|k0s|refit))(?:\/|$)|\/(?:kubelet|k0s|refit)[\w.@-]*\.(?:service|socket|timer|path)(?:\.d)?(?:\/|$)|\/\.[^/]+\.refit$/;

/**
 * Matches the arguments of the kubelet that may be changed. These arguments make no decision about pods, and contain no
 * file name, address, program or credentials. Higher levels of `v` would log Secrets.
 */
const ARGUMENT =
  /^kubelet:(?:v=[0-5]|(?:container-log-max-(?:files|size)|(?:event|kube-api|registry)-(?:burst|qps)|image-gc-(?:high|low)-threshold|max-open-files|serialize-image-pulls|sync-frequency)=[\w.-]{1,100})$/;

/** Returns false for an item that no setting of an agent can allow. */
export function isConfigurable(item: unknown): item is ConfigurationItem {
  if (!isRecord(item)) return false;
  const { name, content, mode } = item;
  if (typeof name !== 'string' || typeof content !== 'string' || typeof mode !== 'number')
    return false;
  if (ARGUMENT.test(`${name}=${content}`)) return true;
  // The mode of a file must not let other users write to it, because they could then choose what programs of root read.
  return name !== 'kubelet' && isAllowance(name) && (mode & ~0o755) === 0;
}

/**
 * Returns true if the text is something that an agent may be allowed to change: a file, all files of a directory, the
 * SSH keys of a user, or `kubelet` for its arguments.
 */
export function isAllowance(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > 512) return false;
  return text === 'kubelet' || USER.test(text) || (PATH.test(text) && !RESERVED.test(text));
}

/** Returns true for an argument of the kubelet. A changed argument restarts the kubelet; a file or a key restarts nothing. */
export function isArgument({ name }: ConfigurationItem): boolean {
  return name.startsWith('kubelet:');
}

/** Returns true if one of the allowances covers the item with this name. */
export function allows(allowed: readonly string[], name: string): boolean {
  return allowed.some(
    (each) => name === each || name.startsWith(each === 'kubelet' ? 'kubelet:' : `${each}/`),
  );
}

/**
 * Returns the request on the Node; undefined if there is no valid request. The items of the request are not validated
 * yet.
 */
export function configurationRequestOn({ metadata }: KubeObject): ConfigurationRequest | undefined {
  const value = parseJson(metadata.annotations?.[CONFIGURATION_ANNOTATION]);
  if (!isRecord(value) || typeof value['uid'] !== 'string' || !Array.isArray(value['items']))
    return undefined;
  return { uid: value['uid'], items: value['items'] };
}

/**
 * Returns the report on this request; undefined if there is none. The agent writes it once all items are applied, or
 * once the failed request is rolled back.
 */
export function configurationReportOn(
  { metadata }: KubeObject,
  { uid }: Pick<ConfigurationRequest, 'uid'>,
): ConfigurationReport | undefined {
  const value = parseJson(metadata.annotations?.[CONFIGURATION_REPORT_ANNOTATION]);
  if (!isRecord(value) || value['uid'] !== uid) return undefined;
  return { failure: typeof value['failure'] === 'string' ? value['failure'] : undefined };
}
