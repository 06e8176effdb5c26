/** Says whether tests of many alike run whole; a sample of each kind is enough where nobody asks for more. */
export const WHOLE = process.env['REFIT_WHOLE'] === '1';
