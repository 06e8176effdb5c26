/** Writes the command of kubectl that makes the same change as a merge patch. */

import type { KubeObject } from '../../kube/resources.ts';
import { shellWord } from '../../util/shell-word.ts';

/** Returns the command. `words` are flags of the connection with a space before each. */
export function patchCommand(
  resource: string,
  { metadata: { name, namespace = '' } }: Pick<KubeObject, 'metadata'>,
  patch: object,
  words = '',
): string {
  return `kubectl${words} patch ${resource} ${name} -n ${namespace} --type=merge -p ${shellWord(JSON.stringify(patch))}`;
}
