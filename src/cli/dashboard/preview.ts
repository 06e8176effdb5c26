/**
 * Previews plans whose text a viewer gives to the page, as `refit preview -f` would with the rights of that viewer. Writes nothing and
 * reads no file.
 */
import type { ConnectionFlags } from '../options.ts';
import { previewTexts } from '../preview/preview-command.ts';
import type { SessionParts } from '../status/status-session.ts';
import { captured } from './captured.ts';
import type { ActionResult } from './state.ts';

/**
 * The maximum number of plans in one text. Each plan takes time in proportion to the number of Nodes, and a controller
 * that serves the page has other work.
 */
const MOST_PLANS = 10;
/** The words that replace the file name in error messages about the text. */
const PLACE = 'the text';

/** Resolves with the output of the command, and with one sentence for each problem. */
export async function previewText(
  text: string,
  flags: ConnectionFlags,
  parts: Omit<SessionParts, 'output'>,
): Promise<ActionResult> {
  const files = [{ path: PLACE, text, isFromFolder: false }];
  return await captured(
    async (output) =>
      await previewTexts(
        files,
        { ...flags, output: 'text', mostPlans: MOST_PLANS },
        { ...parts, output },
      ),
  );
}
