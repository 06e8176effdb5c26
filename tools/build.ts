/** The command behind `npm run build`: the `refit` command as it ships, in `dist/`. */
import { join } from 'node:path';
import { AGENT_FLAGS } from '../src/install/host/agent-flags.ts';
import { buildRefit } from './build/refit.ts';

const path = await buildRefit(join(import.meta.dirname, '..', 'dist'));
process.stdout.write(`${path}\n  node ${path} controller …\n  node ${AGENT_FLAGS.join(' ')} ${path} agent …\n`);
