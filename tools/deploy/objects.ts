/** The values and functions that the manifests of deploy/chart share. */
import { stringify } from 'yaml';

/** The namespace in which controllers run. The chart replaces it by the namespace of the release. */
export const REFIT_NAMESPACE = 'refit-system';

/** The settings that the Pod Security Standard `restricted` requires. */
export const POD_SECURITY = {
  runAsNonRoot: true,
  runAsUser: 65_532,
  runAsGroup: 65_532,
  seccompProfile: { type: 'RuntimeDefault' },
};

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export function object(
  apiVersion: string,
  kind: string,
  name: string,
  namespace: string | undefined,
  rest: object,
): Manifest {
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    ...rest,
  };
}

/** kubectl reads YAML 1.1, where an unquoted `no` means false. */
export function yamlOf(value: unknown): string {
  return stringify(value, { version: '1.1', aliasDuplicateObjects: false, lineWidth: 120 });
}

export function fileOf(source: string, documents: readonly string[]): string {
  return `# Made from ${source} by \`npm run generate\`: change it there.\n${documents.join('---\n')}`;
}
