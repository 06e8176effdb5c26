/** What Cluster API changes on a node besides its version: the request on the Node, and what the node's agent says of it. */
import type { KubeObject } from '../kube/resources.ts';
import { isRecord, parseJson } from '../util/json.ts';

export const CONFIGURATION_ANNOTATION = 'upgrade.refit.dev/node-configuration';
export const CONFIGURATION_REPORT_ANNOTATION = 'upgrade.refit.dev/node-configuration-report';

/** Characters of the items of a request: a Node holds no more than 256 KiB of annotations. */
export const MOST_CHARACTERS = 64 * 1024;

export interface ConfigurationItem {
  /** The path of a file, `user:NAME` for the keys of that user, or `kubelet:ARGUMENT`. */
  readonly name: string;
  /** In base64; the value of an argument as it is. */
  readonly content: string;
  /** Of an argument 0. */
  readonly mode: number;
}

export interface ConfigurationRequest {
  /** Another one for each request. */
  readonly uid: string;
  readonly items: readonly unknown[];
}

/** One way only to write a path, so that names can be compared. */
const PATH = /^(?:\/(?!\.\.?(?:\/|$))[\w.@+:,=-]+)+$/;
const USER = /^user:[a-z_][a-z0-9_-]{0,31}$/;
/** What kubeadm, k0s and Refit look after themselves, and what is no file on a disk. */
const RESERVED =
  /^\/(?:proc|sys|dev|run|tmp|var\/(?:run|tmp)|etc\/(?:kubernetes|k0s|refit)|var\/lib\/(?:kubelet|etcd|k0s|refit))(?:\/|$)|\/(?:kubelet|k0s|refit)[\w.@-]*\.(?:service|socket|timer|path)(?:\.d)?(?:\/|$)|\/\.[^/]+\.refit$/;

/** They decide about no pod, and name no file, no address, no program and no credentials. Higher levels of `v` log Secrets. */
const ARGUMENT =
  /^kubelet:(?:v=[0-5]|(?:container-log-max-(?:files|size)|(?:event|kube-api|registry)-(?:burst|qps)|image-gc-(?:high|low)-threshold|max-open-files|serialize-image-pulls|sync-frequency)=[\w.-]{1,100})$/;

/** False for what no setting allows. */
export function isConfigurable(item: unknown): item is ConfigurationItem {
  if (!isRecord(item)) return false;
  const { name, content, mode } = item;
  if (typeof name !== 'string' || typeof content !== 'string' || typeof mode !== 'number')
    return false;
  if (ARGUMENT.test(`${name}=${content}`)) return true;
  // Who may write to a file of root's could have it read as something else.
  return name !== 'kubelet' && isAllowance(name) && (mode & ~0o755) === 0;
}

/** What an agent may be allowed: a file, all files of a folder, the keys of a user, or `kubelet` for its arguments. */
export function isAllowance(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > 512) return false;
  return text === 'kubelet' || USER.test(text) || (PATH.test(text) && !RESERVED.test(text));
}

export function allows(allowed: readonly string[], name: string): boolean {
  return allowed.some(
    (each) => name === each || name.startsWith(each === 'kubelet' ? 'kubelet:' : `${each}/`),
  );
}

/** Its items may be anything. */
export function configurationRequestOn({ metadata }: KubeObject): ConfigurationRequest | undefined {
  const value = parseJson(metadata.annotations?.[CONFIGURATION_ANNOTATION]);
  if (!isRecord(value) || typeof value['uid'] !== 'string' || !Array.isArray(value['items']))
    return undefined;
  return { uid: value['uid'], items: value['items'] };
}

/** Of this request: written once all is done, or nothing is changed any more and there is a failure. */
export function configurationReportOn(
  { metadata }: KubeObject,
  { uid }: Pick<ConfigurationRequest, 'uid'>,
) {
  const value = parseJson(metadata.annotations?.[CONFIGURATION_REPORT_ANNOTATION]);
  if (!isRecord(value) || value['uid'] !== uid) return undefined;
  return { failure: typeof value['failure'] === 'string' ? value['failure'] : undefined };
}
