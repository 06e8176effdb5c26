/** Judges the UpdaterSets of Cluster API for `refit validate`. */
import { type UpdaterSet, updaterSetKind } from '../../../api/refit/updater-set.ts';
import type { FileKind, Judgement } from '../../../cli/contract/file-kind.ts';
import { setProblems } from '../hooks/updaters/updater-sets.ts';

export const machineFiles: readonly FileKind[] = [
  {
    form: 'object',
    holds: 'settings',
    kind: updaterSetKind,
    judge: (object) => judgeUpdaterSet(object as UpdaterSet),
    conflicts: () => [],
  },
];

function judgeUpdaterSet(set: UpdaterSet): Judgement {
  const title = `UpdaterSet ${set.metadata.name} is valid`;
  return { title, problems: setProblems(set), warnings: [] };
}
