/**
 * Previews plans whose text a viewer gives to the page, as `refit preview -f` would with the rights of that viewer. Writes nothing and
 * reads no file.
 */
import { RefitError } from '../../util/errors.ts';
import type { ConnectionFlags } from '../options.ts';
import { readForeignPlans } from '../preview/foreign/read-foreign-plans.ts';
import { type PreviewParts, previewObjects } from '../preview/preview-command.ts';
import { captured } from './captured.ts';
import type { ActionResult } from './state.ts';

/**
 * The maximum number of plans in one text. Each plan takes time in proportion to the number of Nodes, and a controller
 * that serves the page has other work.
 */
const MOST_PLANS = 10;
/** The words that replace the file name in error messages about the text. */
const PLACE = 'the text';

/**
 * Resolves with the output of the command, and with one sentence for each problem. The text is read only after the API server has let the
 * viewer list plans, and never in this thread.
 */
export async function previewText(
  text: string,
  flags: ConnectionFlags & { readonly ready?: boolean },
  parts: Omit<PreviewParts, 'output'>,
): Promise<ActionResult> {
  return await captured(
    async (output) =>
      await previewObjects(
        async (loaded) => {
          // Each user may ask which kinds the cluster has, so an empty list proves no right.
          if (loaded.length === 0)
            throw new RefitError(
              'REFIT_NO_CRD',
              'the cluster has no kind of plan that Refit knows',
            );
          return await readForeignPlans(text, PLACE, MOST_PLANS, parts.abort);
        },
        { ...flags, output: 'text' },
        { ...parts, output },
      ),
  );
}
