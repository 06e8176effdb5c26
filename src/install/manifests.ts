/** Returns the manifests of each component, which the chart and the kustomize bases use, too. */
import type { KubeObject } from '../kube/resources.ts';
import { failing } from '../util/errors.ts';
import { parseYaml, parseYamlDocument } from '../util/yaml.ts';
import { deployFile } from './deploy-files.ts';

const NOT_YAML = failing('REFIT_INTERNAL', 'a manifest of the package is not YAML: ');

export interface ManifestFlags {
  readonly image?: string;
  readonly payloadUrl?: string;
  readonly checksumUrl?: string;
}

/**
 * Returns the manifests of a component as YAML, with the comments that explain each right. The component consists of these
 * folders of deploy/chart/manifests.
 */
export function manifestsOf(folders: readonly string[], flags: ManifestFlags): string {
  const files = folders.flatMap((name) => {
    const folder = `chart/manifests/${name}`;
    const kustomization = parseYamlDocument(deployFile(`${folder}/kustomization.yaml`), NOT_YAML);
    const { resources } = kustomization as { resources: readonly string[] };
    return resources.map((file) => `${folder}/${file}`);
  });
  const text = files.map((file) => deployFile(file).trimEnd()).join('\n---\n');
  const lines = text.split('\n').flatMap((line) => edited(line, flags) ?? [line]);
  return `${lines.join('\n')}\n`;
}

/** Returns the definitions of the kinds for Plans of k0s, for controllers that run on hosts. */
export function kindsOfK0s(): string {
  const files = ['base/kinds.yaml', 'k0s/kinds.yaml', 'k0s/shards.yaml'];
  const texts = files.map((file) => deployFile(`chart/manifests/${file}`).trimEnd());
  return `${texts.join('\n---\n')}\n`;
}

/** Returns the roles of the agent on one controller. If `node` is set, the result includes the roles for the Node of that name. */
export function controlNodeRoles(name: string, node: string | undefined): string {
  const roles = deployFile('rbac-controlnode.yaml').replaceAll('CONTROL_NODE', name);
  if (node === undefined) return roles;
  const workloads = deployFile('rbac-controlnode-workloads.yaml').replaceAll('CONTROL_NODE', name);
  return `${roles.trimEnd()}\n---\n${workloads.replaceAll('NODE', node)}`;
}

/** Returns the objects of a text, which must be one of the package's own manifests. */
export function objectsIn<T extends KubeObject = KubeObject>(text: string): T[] {
  const objects = parseYaml(text, NOT_YAML) as (T | null)[];
  return objects.filter((object) => object !== null);
}

/** Returns the lines that replace a line because of a flag, or undefined if the line stays. */
function edited(
  line: string,
  { image, payloadUrl, checksumUrl }: ManifestFlags,
): string[] | undefined {
  const [, indent = '', name] =
    /^( +(?:- )?)(image: |--payload-url=|--checksum-url=)/.exec(line) ?? [];
  if (name === 'image: ')
    return image === undefined ? undefined : [`${indent}image: ${JSON.stringify(image)}`];
  if (name === undefined || payloadUrl === undefined) return undefined;
  const value = name === '--payload-url=' ? payloadUrl : checksumUrl;
  return value === undefined ? [] : [`${indent}${JSON.stringify(`${name}${value}`)}`];
}
