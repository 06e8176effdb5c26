/** Says where the objects of Cluster API have the version of their Machines, and makes the patch that changes it. */

export const CONTROL_PLANE_PATH: readonly string[] = ['spec', 'version'];
export const DEPLOYMENT_PATH: readonly string[] = ['spec', 'template', 'spec', 'version'];
export const TOPOLOGY_PATH: readonly string[] = ['spec', 'topology', 'version'];

/** Returns an object that has the value at the path, and nothing else. */
export function nested(path: readonly string[], value: string): Record<string, unknown> {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<
    string,
    unknown
  >;
}
