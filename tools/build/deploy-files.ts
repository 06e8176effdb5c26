/** Puts the text of deploy/ into the built program, in the place of the module that reads it in the source tree. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

const DEPLOY = join(import.meta.dirname, '..', '..', 'deploy');
const MODULE = join(import.meta.dirname, '..', '..', 'src', 'install', 'deploy-files.ts');
/** What src/install reads. */
const FILES = ['chart/manifests/{base,k0s,cattle,capi}/*.yaml', 'host/refit-agent.*', 'rbac-controlnode*.yaml'];

export const deployFilesInside: Plugin = {
  name: 'deploy-files',
  load(id) {
    if (id !== MODULE) return null;
    const names = globSync(FILES, { cwd: DEPLOY }).toSorted();
    const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(DEPLOY, name), 'utf8')]));
    return `const files = ${JSON.stringify(files)};\nexport const deployFile = (name) => files[name];\n`;
  },
};
