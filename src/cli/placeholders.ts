/**
 * Finds placeholders that a tool replaces before kubectl reads a file: `${VERSION}` of Flux and Terraform, and
 * `{{ .Values.version }}` of Helm. `refit validate` often gets such a file as it stands in a repository.
 */
import type { KubeObject } from '../kube/resources.ts';
import { isRecord } from '../util/json.ts';

const PLACEHOLDER = /\$\{[^{}"]{1,100}\}|\{\{[^{}"]{1,100}\}\}/;

const adviceOn = (found: string): string =>
  `${found} is a placeholder, so check the file after your tool has replaced it`;

/** Returns the problem. If it quotes a placeholder, the problem ends with an advice about it. */
export function withPlaceholder(problem: string): string {
  const [found] = PLACEHOLDER.exec(problem) ?? [];
  return found === undefined ? problem : `${problem}; ${adviceOn(found)}`;
}

/**
 * Returns a warning for each URL of the object that has a placeholder. Such a URL is well formed, so it is no problem. Other
 * texts of a valid object, such as the arguments of a container, may contain these characters on purpose.
 */
export function placeholdersInUrls(object: KubeObject): string[] {
  return urlsIn(object, '').flatMap(([path, url]) => {
    const [found] = PLACEHOLDER.exec(url) ?? [];
    return found === undefined ? [] : [`${path}: ${JSON.stringify(url)}: ${adviceOn(found)}`];
  });
}

/** Returns each URL in the value, with its path. The metadata has only texts for other tools. */
function urlsIn(value: unknown, path: string): [path: string, url: string][] {
  if (typeof value === 'string') return /^https?:/.test(value) ? [[path, value]] : [];
  if (Array.isArray(value))
    return value.flatMap((item, index) => urlsIn(item, `${path}[${index}]`));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const isForOthers = path === '' && key === 'metadata';
    return isForOthers ? [] : urlsIn(member, path === '' ? key : `${path}.${key}`);
  });
}
