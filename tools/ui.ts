/** Builds the user interface, and prints the folder that it is in. `refit dashboard` runs this in a checkout. */
import { buildUi } from './build/ui.ts';

process.stdout.write(`${await buildUi()}\n`);
