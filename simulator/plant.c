// Choosing a planted fault: plant.h.
#include "simulator/plant.h"

#include "simulator/sim.h"

#include <stddef.h>
#include <string.h>

enum sim__plant sim__plant = SIM__PLANT_NONE;

static const struct {
    enum sim__plant plant;
    const char *word, *text;
} plants[] = {
#define PLANT_ROW(name, word, text) {SIM__PLANT_##name, word, text},
    SIM__PLANT_LIST(PLANT_ROW)
#undef PLANT_ROW
};
#define PLANT_COUNT ((int)(sizeof plants / sizeof plants[0]))

enum base_status sim_plant(const char *name) {
    if (name == NULL) {
        sim__plant = SIM__PLANT_NONE;
        return BASE_OK;
    }
    for (int i = 0; i < PLANT_COUNT; ++i) {
        if (strcmp(plants[i].word, name) == 0) {
            sim__plant = plants[i].plant;
            return BASE_OK;
        }
    }
    return base_status_set(BASE_INVALID_VALUE, "no planted fault \"%s\": %s is one", name,
                           plants[0].word);
}

const char *sim_plant_name(int index) {
    return index >= 0 && index < PLANT_COUNT ? plants[index].word : NULL;
}

const char *sim_plant_text(int index) {
    return index >= 0 && index < PLANT_COUNT ? plants[index].text : NULL;
}
